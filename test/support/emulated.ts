// Programs for AArch64, run by qemu's user mode: the kernel gives every such file to qemu, also one
// that another program starts. This is configured in a separate namespace (Linux 6.7 and newer), so
// that this host does not change. In addition to the libraries of this host, they see those of the
// root of a Debian for arm64.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { findProgram, run } from './tools.ts';

const emulator = 'qemu-aarch64-static';
// ELF, 64 bits, little-endian, a program or a library, machine 183. F: qemu is opened here, and not
// where a program looks for it. P: it is passed the name of the call.
const start = String.raw`\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00`;
const mask = String.raw`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff`;
const script = `set -e
mount -t overlay -o "lowerdir=$1/usr/lib:/usr/lib" overlay /usr/lib
shift
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf '%s' "$1" >/proc/sys/fs/binfmt_misc/register
shift
exec "$@"`;

const emulated = (root: string, ...command: readonly string[]): [string, ...string[]] => [
  'unshare',
  ...['--user', '--map-root-user', '--mount', 'sh', '-c', script, 'sh', root],
  `:aarch64:M::${start}:${mask}:${findProgram(emulator)}:FP`,
  ...command,
];

/** Why no program for AArch64 can run here; undefined: it can. */
export const whyNotEmulated = (root: string): string | undefined => {
  if (findProgram(emulator) === undefined) return `${emulator} is not installed (package qemu-user-static)`;
  const [program, ...args] = emulated(root, 'true');
  return spawnSync(program, args).status === 0
    ? undefined
    : 'this host has no binfmt_misc and no overlays in namespaces of users (Linux 6.7 or newer)';
};

/** Runs a program to its end, and answers what it wrote. Throws what it complained of. */
export const runEmulated = async (
  root: string,
  command: readonly string[],
  more: NodeJS.ProcessEnv = {},
): Promise<string> => {
  const [program, ...args] = emulated(root, ...command);
  const { code, out, complaints } = await run(program, args, {
    environment: more,
  });
  if (code !== 0) throw new Error(`${command.join(' ')} (${code}): ${complaints}${out}`);
  return out;
};

export const startEmulated = (root: string, command: readonly string[]): ChildProcess => {
  const [program, ...args] = emulated(root, ...command);
  return spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
};
