// OpenSSL's command with Debian's engine for PKCS#11 (libengine-pkcs11-openssl). A configuration
// file names the token. The file holds the PIN, which is none with our token and worth nothing with
// the reference.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Token } from './token.ts';

export const engine = '/usr/lib/x86_64-linux-gnu/engines-3/pkcs11.so';

/** Writes a configuration; returns the environment variables that make libcrypto read it. */
export const engineEnvironment = (token: Token): NodeJS.ProcessEnv => {
  const config = join(token.folder, 'openssl.cnf');
  writeFileSync(
    config,
    `openssl_conf = start\n[start]\nengines = engines\n[engines]\npkcs11 = token\n[token]\nengine_id = pkcs11\n` +
      `dynamic_path = ${engine}\nMODULE_PATH = ${token.module}\nPIN = ${token.pin}\ninit = 1\n` +
      `[req]\ndistinguished_name = subject\n[subject]\n`,
  );
  return { ...token.environment, OPENSSL_CONF: config };
};

/** Without a token: for what other authorities sign. */
export const plainEnvironment = (folder: string): NodeJS.ProcessEnv => {
  const config = join(folder, 'plain.cnf');
  writeFileSync(config, '[req]\ndistinguished_name = subject\n[subject]\n');
  return { OPENSSL_CONF: config };
};
