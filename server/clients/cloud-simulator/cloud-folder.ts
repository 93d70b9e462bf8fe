// The folder of a simulated cloud, mode 700: `credentials` (the form that AWS tools read),
// `tls.crt` and `tls.key`. The first start makes all three. The secret access key goes from the
// file into the addon as bytes.

import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { command } from '../../base/command-line.ts';
import { StartError } from '../../base/start-error.ts';
import type { CloudCrypto } from './crypto.ts';
import type { AccessKey } from './verify-kms-caller.ts';

export interface CloudFiles {
  readonly accessKey: AccessKey;
  readonly tls: { readonly certificate: Buffer; readonly key: Buffer };
  readonly credentialsPath: string;
  readonly certificatePath: string;
}

const daysOfCertificate = 825;

const readSecretFile = (path: string): Buffer => {
  const fd = openSync(path, 'r');
  try {
    const { mode, uid } = fstatSync(fd);
    if ((mode & 0o077) !== 0 || (uid !== 0 && uid !== process.geteuid?.()))
      throw new StartError('permission', `${path} can be read by other users: ${command`chmod 600 ${path}`}`);
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
};

const writeCredentials = (crypto: CloudCrypto, path: string): void => {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const random = Buffer.alloc(16);
  crypto.random(random);
  const id = `AKIA${[...random].map((byte) => letters[byte & 31]).join('')}`;
  const { key, characters } = crypto.generateSecretAccessKey();
  const content = Buffer.concat([
    Buffer.from(`[default]\naws_access_key_id = ${id}\naws_secret_access_key = `),
    characters,
    Buffer.from('\n'),
  ]);
  try {
    writeFileSync(path, content, { mode: 0o600, flag: 'wx' });
  } finally {
    crypto.release(key);
    crypto.wipe(characters);
    crypto.wipe(content);
  }
};

/** The value behind `name =` on a line of its own. */
const readSetting = (content: Buffer, name: string, path: string): Buffer => {
  for (let from = 0; from < content.length; ) {
    const newline = content.indexOf(0x0a, from);
    const end = newline < 0 ? content.length : newline;
    const equals = content.indexOf(0x3d, from);
    if (equals >= 0 && equals < end && content.toString('latin1', from, equals).trim() === name) {
      let first = equals + 1;
      let last = end;
      while (first < last && (content[first] ?? 0) <= 0x20) first += 1;
      while (last > first && (content[last - 1] ?? 0) <= 0x20) last -= 1;
      if (last > first) return content.subarray(first, last);
    }
    from = end + 1;
  }
  throw new StartError('config', `${path} has no ${name}`);
};

/** Throws StartError. */
export const openCloudFiles = (crypto: CloudCrypto, folder: string, names: readonly string[]): CloudFiles => {
  const credentialsPath = join(folder, 'credentials');
  const certificatePath = join(folder, 'tls.crt');
  const keyPath = join(folder, 'tls.key');
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if ((statSync(folder).mode & 0o077) !== 0)
      throw new StartError('permission', `${folder} can be opened by other users: ${command`chmod 700 ${folder}`}`);
    if (!existsSync(credentialsPath)) writeCredentials(crypto, credentialsPath);
    if (!existsSync(certificatePath)) {
      const certificate = crypto.createSelfSignedCertificate({ keyPath, names, days: daysOfCertificate });
      writeFileSync(certificatePath, certificate, { mode: 0o644 });
    }
    const content = readSecretFile(credentialsPath);
    try {
      const accessKeyId = readSetting(content, 'aws_access_key_id', credentialsPath).toString('latin1');
      const secret = crypto.importSecret('generic', readSetting(content, 'aws_secret_access_key', credentialsPath));
      return {
        accessKey: { accessKeyId, secret },
        tls: { certificate: readFileSync(certificatePath), key: readSecretFile(keyPath) },
        credentialsPath,
        certificatePath,
      };
    } finally {
      crypto.wipe(content);
    }
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError('permission', `${folder} cannot be used: ${(error as Error).message}`, { cause: error });
  }
};
