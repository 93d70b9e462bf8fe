// Checkpoints of a transparency log: c2sp.org/tlog-checkpoint (origin, size, root) in
// c2sp.org/signed-note with Ed25519. Read strictly: a note that could be written in two ways is
// refused. Leaves out cosignatures of witnesses: their lines are passed over.

import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import { parseBase64, toBase64 } from './bytes.ts';

export interface Checkpoint {
  /** Names the log. It never changes. */
  readonly origin: string;
  /** Records that it covers. */
  readonly size: number;
  /** 32 bytes. */
  readonly root: Buffer;
  /**
   * The set of the database's policy rows, on an extension line. Undefined where there is no such
   * line.
   */
  readonly rows?: { readonly version: number; readonly tag: string } | undefined;
  /**
   * The last one that the former key signs: from the next record on, the next key signs. Both sign
   * this one.
   */
  readonly rotation?: { readonly former: Buffer; readonly next: Buffer } | undefined;
}

/** The text that is signed, with its last line feed. */
export const checkpointText = ({ origin, size, root, rows, rotation }: Checkpoint): string =>
  `${origin}\n${size}\n${toBase64(root)}\n${rows === undefined ? '' : `rows ${rows.version} ${rows.tag}\n`}${
    rotation === undefined ? '' : `rotation ${toBase64(rotation.former)} ${toBase64(rotation.next)}\n`
  }`;

const ed25519 = 1;
const keyIdOf = (name: string, publicKey: Uint8Array): Buffer =>
  hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(ed25519), publicKey]), 'buffer').subarray(0, 4);
const isName = (text: string): boolean => text !== '' && !/[\s+]/u.test(text);

/**
 * The signer, as text that can be stored with a log: `NAME+ID+KEY`. `publicKey` is the 32 bytes of
 * RFC 8032.
 */
export const verifierKey = (name: string, publicKey: Uint8Array): string =>
  `${name}+${keyIdOf(name, publicKey).toString('hex')}+${toBase64(Buffer.concat([Buffer.of(ed25519), publicKey]))}`;

export interface Verifier {
  readonly name: string;
  readonly keyId: Buffer;
  readonly key: KeyObject;
}

/** Null when the text is not a verifier key of this kind. */
export const parseVerifierKey = (text: string): Verifier | null => {
  const [, name = '', id = '', encoded = ''] = /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(text.trim()) ?? [];
  const bytes = parseBase64(encoded);
  if (!isName(name) || bytes?.length !== 33 || bytes[0] !== ed25519) return null;
  const publicKey = bytes.subarray(1);
  const keyId = keyIdOf(name, publicKey);
  if (keyId.toString('hex') !== id) return null;
  const key = createPublicKey({
    format: 'jwk',
    key: { kty: 'OKP', crv: 'Ed25519', x: publicKey.toString('base64url') },
  });
  return { name, keyId, key };
};

/** The 32 bytes of RFC 8032. */
export const publicKeyOf = ({ key }: Pick<Verifier, 'key'>): Buffer =>
  Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url');

/** Who signs: `publicKey` is the 32 bytes of RFC 8032, a signature has 64. */
export interface NoteSigner {
  readonly publicKey: Uint8Array;
  sign(text: string): Uint8Array;
}

/** A note with one signature for each signer. The signers' name is the log's origin. */
export const signedNote = (checkpoint: Checkpoint, ...signers: readonly NoteSigner[]): string => {
  const { origin } = checkpoint;
  const text = checkpointText(checkpoint);
  const lines = signers.map(({ publicKey, sign }) => {
    const line = toBase64(Buffer.concat([keyIdOf(origin, publicKey), sign(text)]));
    return `— ${origin} ${line}\n`;
  });
  return `${text}\n${lines.join('')}`;
};

const extensionsOf = (lines: readonly string[]): Pick<Checkpoint, 'rows' | 'rotation'> => {
  let found: Pick<Checkpoint, 'rows' | 'rotation'> = {};
  for (const line of lines) {
    const [, version, tag] = /^rows (0|[1-9][0-9]{0,14}) ([0-9a-f]{64})$/.exec(line) ?? [];
    if (tag !== undefined && found.rows === undefined) found = { ...found, rows: { version: Number(version), tag } };
    const [, one = '', other = ''] = /^rotation (\S{44}) (\S{44})$/.exec(line) ?? [];
    const former = parseBase64(one);
    const next = parseBase64(other);
    if (former?.length === 32 && next?.length === 32) found = { ...found, rotation: { former, next } };
  }
  return found;
};

/** Reads a note without looking at its signatures. Null when it is none. */
export const parseCheckpoint = (note: string): Checkpoint | null => {
  const end = note.lastIndexOf('\n\n');
  if (end < 0 || !note.endsWith('\n') || !note.slice(end + 2).startsWith('— ')) return null;
  const [origin = '', count = '', encoded = '', ...extensions] = note.slice(0, end).split('\n');
  const root = parseBase64(encoded);
  const size = Number(count);
  if (origin === '' || !/^(0|[1-9][0-9]{0,15})$/.test(count) || !Number.isSafeInteger(size) || root?.length !== 32)
    return null;
  return { origin, size, root, ...extensionsOf(extensions) };
};

/**
 * The checkpoint of a note that this verifier's key has signed; null when it has not, or when the
 * note is none.
 */
export const verifyNote = (note: string, { name, keyId, key }: Verifier): Checkpoint | null => {
  const checkpoint = parseCheckpoint(note);
  if (checkpoint === null || checkpoint.origin !== name) return null;
  const end = note.lastIndexOf('\n\n');
  const signed = Buffer.from(note.slice(0, end + 1));
  for (const line of note.slice(end + 2, -1).split('\n')) {
    const [, signer = '', encoded = ''] = /^— (\S+) (\S+)$/.exec(line) ?? [];
    const bytes = parseBase64(encoded);
    if (signer !== name || bytes?.length !== 68 || !bytes.subarray(0, 4).equals(keyId)) continue;
    if (verify(null, signed, key, bytes.subarray(4))) return checkpoint;
  }
  return null;
};

/** A key of the log: the present one, or one that was rotated. */
export interface LogKey {
  readonly publicKey: Buffer;
  /**
   * The last checkpoint that it may sign: of this log, with so many records. Null: it signs now.
   */
  readonly until: { readonly origin: string; readonly size: number } | null;
}

/**
 * The checkpoint of a note of this log that one of its keys has signed while it was in use; null
 * when none has.
 */
export const verifyLogNote = (note: string, origin: string, keys: readonly LogKey[]): Checkpoint | null => {
  for (const { publicKey, until } of keys) {
    const verifier = parseVerifierKey(verifierKey(origin, publicKey));
    const checkpoint = verifier === null ? null : verifyNote(note, verifier);
    if (checkpoint === null) continue;
    if (until === null || (until.origin === origin && checkpoint.size <= until.size)) return checkpoint;
  }
  return null;
};
