// A software token for tests of hardware root providers: SoftHSM2 in its own folder, with keys that
// pkcs11-tool creates.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const softhsmModule = [
  '/usr/lib/softhsm/libsofthsm2.so',
  '/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so',
].find((path) => existsSync(path));

export interface SoftToken {
  readonly environment: { readonly SOFTHSM2_CONF: string };
  readonly pinFile: string;
  /** Makes an AES-256 key. */
  addKey(label: string, ...options: readonly string[]): void;
}

export const makeSoftToken = (folder: string, label: string, pin: string): SoftToken => {
  if (softhsmModule === undefined) throw new Error('softhsm2 is not installed: sh test/support/prepare.sh test');
  const tokens = join(folder, 'tokens');
  mkdirSync(tokens, { recursive: true });
  const conf = join(folder, 'softhsm2.conf');
  writeFileSync(conf, `directories.tokendir = ${tokens}\nobjectstore.backend = file\nlog.level = ERROR\n`);
  const environment = { SOFTHSM2_CONF: conf };
  const env = { ...process.env, ...environment };
  execFileSync('softhsm2-util', ['--init-token', '--free', '--label', label, '--pin', pin, '--so-pin', '12345678'], {
    env,
    stdio: 'ignore',
  });
  const pinFile = join(folder, 'pin');
  writeFileSync(pinFile, `${pin}\n`, { mode: 0o600 });
  return {
    environment,
    pinFile,
    addKey: (key, ...options) => {
      execFileSync(
        'pkcs11-tool',
        ['--module', softhsmModule, '--login', '--pin', pin, '--token-label', label, '--keygen', '--key-type', 'AES:32']
          .concat(['--label', key, '--usage-decrypt', '--sensitive'])
          .concat(options),
        { env, stdio: 'ignore' },
      );
    },
  };
};
