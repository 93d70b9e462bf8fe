// The machines that packages are made for, and where a build has what it takes for each of them:
// native files, Node and Debian's libraries. What is for this machine is in build/, in the system
// and in the running Node; what is for another, cross.sh puts below build/<machine>.
import { realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Machine {
  /** The name that uname and RPM use. */
  readonly name: string;
  /** The name that Node uses (`process.arch`). */
  readonly node: string;
  /** The name that Debian and OCI use. */
  readonly debian: string;
  /** Debian's folder of its libraries, and its loader. */
  readonly libraries: string;
  readonly loader: string;
}

export const machines: readonly Machine[] = [
  {
    name: 'x86_64',
    node: 'x64',
    debian: 'amd64',
    libraries: '/usr/lib/x86_64-linux-gnu',
    loader: '/lib64/ld-linux-x86-64.so.2',
  },
  {
    name: 'aarch64',
    node: 'arm64',
    debian: 'arm64',
    libraries: '/usr/lib/aarch64-linux-gnu',
    loader: '/lib/ld-linux-aarch64.so.1',
  },
];

/** Everything native that a package is made of. */
export interface Parts {
  readonly machine: Machine;
  /** The folder of the native build. */
  readonly built: string;
  /** Node's program. */
  readonly node: string;
  /** The root of a Debian with the libraries. */
  readonly system: string;
  readonly strip: string;
}

export const partsOf = (root: string, machine: Machine): Parts => {
  if (machine.node === process.arch)
    return { machine, built: join(root, 'build'), node: realpathSync(process.execPath), system: '/', strip: 'strip' };
  const built = join(root, 'build', machine.name);
  return {
    machine,
    built,
    node: join(built, 'node/bin/node'),
    system: join(built, 'system'),
    strip: `${machine.name}-linux-gnu-strip`,
  };
};

/** Next to the folder of the program, as in the packages of npm and in Node's own archives. */
export const licenceOfNode = ({ node }: Parts): string => join(dirname(node), '../LICENSE');
