// Key files of the MariaDB plugin with known keys, wrapped by a master key of the real service
// through the real library.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { Instance } from './mariadb-site.ts';
import { library } from './pkcs11-host.ts';

export interface KnownKey {
  readonly id: number;
  readonly version: number;
  readonly bytes: Buffer;
}

/**
 * AES-GCM under a master key, in a process of its own: PKCS#11 calls block. Standard input: the
 * data.
 */
const encrypt = `
  const pkcs11js = (await import('pkcs11js')).default;
  const [path, label, iv, aad] = process.argv.slice(1);
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  const data = Buffer.concat(chunks);
  const p11 = new pkcs11js.PKCS11();
  p11.load(path);
  p11.C_Initialize();
  const session = p11.C_OpenSession(p11.C_GetSlotList(true)[0], pkcs11js.CKF_SERIAL_SESSION);
  p11.C_Login(session, pkcs11js.CKU_USER, 'any');
  p11.C_FindObjectsInit(session, [{ type: pkcs11js.CKA_LABEL, value: Buffer.from(label) }]);
  const key = p11.C_FindObjects(session);
  p11.C_FindObjectsFinal(session);
  const parameter = { type: pkcs11js.CK_PARAMS_AES_GCM, iv: Buffer.from(iv, 'hex'), aad: Buffer.from(aad), ivBits: 96, tagBits: 128 };
  p11.C_EncryptInit(session, { mechanism: pkcs11js.CKM_AES_GCM, parameter }, key);
  process.stdout.write(p11.C_Encrypt(session, data, Buffer.alloc(data.length + 16)).toString('hex'));
  p11.C_Finalize();
`;

/** Writes the key file and its copy. The master key with this label exists. */
export const writeKeyFile = (
  instance: Instance,
  config: string,
  master: string,
  file: { readonly format: 1 | 2; readonly sequence: number; readonly keys: readonly KnownKey[] },
): void => {
  const iv = randomBytes(12).toString('hex');
  const head = [
    `dke-mariadb-keys ${file.format}`,
    'file 00112233445566778899aabbccddeeff',
    `sequence ${file.sequence}`,
    `master ${master}`,
    ...file.keys.map(({ id, version }) => `key ${id} ${version} 256 1790000000${file.format === 1 ? '' : ' a1b2c3'}`),
    '',
  ].join('\n');
  const wrapped = execFileSync(process.execPath, ['--input-type=module', '-e', encrypt, library, master, iv, head], {
    input: Buffer.concat(file.keys.map(({ bytes }) => bytes)),
    env: { ...process.env, ...instance.environment, DKE_PKCS11_CONF: config },
    encoding: 'utf8',
  });
  const body = `${head}wrapped ${iv} ${wrapped}\n`;
  const text = `${body}crc32 ${crc32(body).toString(16).padStart(8, '0')}\n`;
  for (const path of [instance.keyFile, `${instance.keyFile}.copy`]) writeFileSync(path, text, { mode: 0o600 });
};
