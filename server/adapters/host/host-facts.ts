// Which host this is, as its own user can tell: the machine id, and the addresses of its network
// interfaces that have a device. A copy of a virtual machine has other addresses, a data directory
// that was moved another machine id as well. Containers have neither, and say nothing. Hashed: the
// audit log does not need the values.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const hashOf = (what: string, value: string): string =>
  createHash('sha256').update(`dke host ${what} ${value}`).digest('hex').slice(0, 16);
const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
};

const interfaces = '/sys/class/net';
const readAddresses = (): readonly string[] => {
  if (!existsSync(interfaces)) return [];
  return readdirSync(interfaces)
    .filter((name) => existsSync(join(interfaces, name, 'device')))
    .map((name) => read(join(interfaces, name, 'address')))
    .filter((address) => /[1-9a-f]/.test(address));
};

/** For `isSameHost` (domain/host.ts); empty: nothing is known. */
export const readHostFacts = (): string => {
  const machine = read('/etc/machine-id');
  return [
    ...(/^[0-9a-f]{32}$/.test(machine) ? [`machine=${hashOf('machine', machine)}`] : []),
    ...readAddresses().map((address) => `interface=${hashOf('interface', address)}`),
  ].join(' ');
};
