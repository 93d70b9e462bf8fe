// Checkpoints: reads written ones, refuses everything else.

import { generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  checkpointText,
  parseCheckpoint,
  parseVerifierKey,
  signedNote,
  verifierKey,
  verifyNote,
} from '../../../server/base/checkpoint.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
const checkpoint = { origin: 'dke/audit/one', size: 1234, root: Buffer.alloc(32, 7) };
const note = signedNote(checkpoint, { publicKey: raw, sign: (text) => sign(null, Buffer.from(text), privateKey) });
const verifier = (name = checkpoint.origin, key: Uint8Array = raw) => {
  const parsed = parseVerifierKey(verifierKey(name, key));
  if (parsed === null) throw new Error('no verifier key');
  return parsed;
};

describe('verifier keys', () => {
  // The key of the examples of Go's golang.org/x/mod/sumdb/note.
  const known = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
  test('one that others have made is read, and written the same', () => {
    const parsed = parseVerifierKey(known);
    expect(parsed).toMatchObject({ name: 'PeterNeumann', keyId: Buffer.from('c74f20a3', 'hex') });
    const key = parsed?.key.export({ format: 'der', type: 'spki' }).subarray(-32);
    expect(verifierKey('PeterNeumann', key ?? Buffer.alloc(0))).toBe(known);
  });
  test.each([
    ['an id of another key', known.replace('c74f20a3', 'c74f20a4')],
    ['another name', known.replace('PeterNeumann', 'Other')],
    ['no key', 'PeterNeumann+c74f20a3+'],
    ['a blank in the name', known.replace('Peter', 'Pe er')],
    ['nothing', ''],
  ])('%s is refused', (_, text) => {
    expect(parseVerifierKey(text)).toBeNull();
  });
});

describe('notes', () => {
  test('what was signed is read', () => {
    expect(note.split('\n').slice(0, 4)).toEqual([checkpoint.origin, '1234', checkpoint.root.toString('base64'), '']);
    expect(verifyNote(note, verifier())).toEqual(checkpoint);
    expect(parseCheckpoint(note)).toEqual(checkpoint);
  });
  test('an additional signature of another key is ignored', () => {
    const [text, lines] = note.split('\n\n');
    const other = `— witness ${Buffer.alloc(68, 1).toString('base64')}`;
    expect(verifyNote(`${text}\n\n${other}\n${lines}`, verifier())).toEqual(checkpoint);
    expect(verifyNote(`${text}\n\n${other}\n`, verifier())).toBeNull();
  });
  test('every changed byte is noticed', () => {
    const bytes = Buffer.from(note, 'utf8');
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect([at, verifyNote(changed.toString('utf8'), verifier())]).toEqual([at, null]);
    }
  });
  test.each([
    ['a size with a leading zero', note.replace('\n1234\n', '\n01234\n')],
    ['a size with a sign', note.replace('\n1234\n', '\n+1234\n')],
    ['a size that no number holds', note.replace('\n1234\n', '\n99999999999999999\n')],
    ['a short root', note.replace(checkpoint.root.toString('base64'), 'AAAA')],
    ['no signature', `${checkpointText(checkpoint)}\n`],
    ['no end of line', note.slice(0, -1)],
  ])('%s is not a checkpoint', (_, text) => {
    expect(parseCheckpoint(text)).toBeNull();
  });
  test('another key, and the same key under another name, have not signed it', () => {
    const other = generateKeyPairSync('ed25519').publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
    expect(verifyNote(note, verifier(checkpoint.origin, other))).toBeNull();
    expect(verifyNote(note, verifier('dke/audit/two'))).toBeNull();
  });
});
