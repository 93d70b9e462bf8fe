// One run of the provider's installer in a process of its own, which kills itself after a given
// number of steps, as a power cut would. The payload is the real library with a small program next
// to it, so that a test can afford every step.
//
//   node provider-install-child.ts <action> <base> <build a|b> <steps; 0 = to the end>
//
// Prints the report as JSON at the end.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { install, rollback, uninstall, upgrade } from '../../provider/install/install.ts';
import { layoutOf } from '../../provider/install/layout.ts';
import { effectiveOwner } from '../../provider/install/owner.ts';
import { buildOf, type Payload } from '../../provider/install/payload.ts';

const built = resolve(import.meta.dirname, '../../build/provider/1.0');

/** A small payload; `a` and `b` differ in library, script and program. */
export const smallPayload = (name: string): Payload => {
  const parts = {
    // Bytes after an ELF file's last section are ignored.
    library: Buffer.concat([readFileSync(join(built, 'libdke_pkcs11.so')), Buffer.from(name)]),
    agentScript: Buffer.from(`#!/bin/sh\necho ${name}\n`),
    agent: [
      { path: 'dke-probe', mode: 0o755, content: readFileSync(join(built, 'dke-probe')) },
      { path: 'dist/main.js', mode: 0o644, content: Buffer.from(`'${name}';\n`) },
    ],
  };
  return { version: `1.0.0-${name}`, build: buildOf(parts), ...parts };
};

if (import.meta.main) {
  const [action = '', base = '', build = '', steps = '0'] = process.argv.slice(2);
  let left = Number(steps);
  const options = {
    layout: layoutOf('hsm', base),
    owner: effectiveOwner(),
    logDirectory: join(base, 'log'),
    dryRun: false,
    force: false,
    unitFolder: null,
    reached: () => {
      if (--left === 0) process.kill(process.pid, 'SIGKILL');
    },
  };
  const run = {
    install: () => install(options, smallPayload(build)),
    upgrade: () => upgrade(options, smallPayload(build)),
    rollback: () => rollback(options),
    uninstall: () => uninstall({ ...options, purge: null, configPath: join(base, 'pkcs11.toml') }),
  }[action];
  if (run === undefined) throw new Error(`no action ${action}`);
  process.stdout.write(JSON.stringify(run()));
}
