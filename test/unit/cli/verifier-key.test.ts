// The verifier key as an option: the key itself, or a file whose path may look like one.
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifierKey } from '../../../server/base/checkpoint.ts';
import { readVerifier, verifierText } from '../../../server/cli/service/verifier-key.ts';
import { folderOfTest } from '../../support/folders.ts';

const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
const key = verifierKey('keys.example', Buffer.from(x, 'base64url'));

test('a verifier key is taken as it is, and from a file whatever its path contains', () => {
  const folder = folderOfTest();
  const paths = ['key', 'log+1', 'keys.example+0123abcd+AAAA'].map((name) => join(folder, name));
  for (const path of paths) writeFileSync(path, `${key}\n`);
  expect([key, ...paths].map(verifierText)).toEqual([key, key, key, key]);
  expect(readVerifier(paths[1] ?? '').name).toBe('keys.example');
});

test('what is neither is refused by its name', () => {
  const folder = folderOfTest();
  writeFileSync(join(folder, 'a+b'), 'something');
  expect(() => verifierText(join(folder, 'a+b'))).toThrow('a+b is not a verifier key');
  expect(() => verifierText('keys.example+0123abcd+AAAA')).toThrow('keys.example+0123abcd+AAAA is not a verifier key');
  expect(() => verifierText(join(folder, 'gone'))).toThrow('gone cannot be read (ENOENT)');
});
