// Checks the audit log in the browser, using only WebCrypto: that a record is in the tree of a
// signed checkpoint (RFC 9162 section 2.1.3.2), and that a whole export is what its checkpoints
// have signed (c2sp.org/tlog-checkpoint, signed-note with Ed25519). The service that keeps the log
// is not asked whether it is right. `dke audit verify` does the same without a browser, with a
// verifier key that was kept elsewhere, which is the stronger check.

import { toHex } from './hex.ts';

const encoder = new TextEncoder();

type Bytes = Uint8Array<ArrayBuffer>;

const fromBase64 = (text: string): Bytes => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
const equal = (a: Uint8Array, b: Uint8Array): boolean => toHex(a) === toHex(b);

const sha256 = async (...parts: readonly Uint8Array[]): Promise<Bytes> => {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return new Uint8Array(await crypto.subtle.digest('SHA-256', whole));
};
const leafPrefix = Uint8Array.of(0);
const nodePrefix = Uint8Array.of(1);
const leafHash = (entry: string): Promise<Bytes> => sha256(leafPrefix, encoder.encode(entry));
const nodeHash = (left: Uint8Array, right: Uint8Array): Promise<Bytes> => sha256(nodePrefix, left, right);

interface Verifier {
  readonly name: string;
  readonly keyId: string;
  readonly key: CryptoKey;
}

export interface Checkpoint {
  readonly size: number;
  readonly root: Bytes;
}

/** Reads a verifier key, `NAME+ID+KEY`; throws when it is not valid. */
const readVerifier = async (text: string): Promise<Verifier> => {
  const [, name = '', keyId = '', encoded = ''] = /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(text) ?? [];
  const bytes = fromBase64(encoded);
  const id = toHex((await sha256(encoder.encode(`${name}\n`), bytes)).subarray(0, 4));
  if (bytes.length !== 33 || bytes[0] !== 1 || id !== keyId) throw new Error('the verifier key cannot be read');
  const key = await crypto.subtle.importKey('raw', bytes.slice(1), { name: 'Ed25519' }, false, ['verify']);
  return { name, keyId, key };
};

/** The checkpoint of a note that the verifier has signed; null when it has not. */
const readCheckpoint = async (note: string, { name, keyId, key }: Verifier): Promise<Checkpoint | null> => {
  const end = note.lastIndexOf('\n\n');
  const [origin, count = '', root = ''] = note.slice(0, end).split('\n');
  if (end < 0 || origin !== name || !/^(0|[1-9][0-9]{0,15})$/.test(count)) return null;
  for (const line of note.slice(end + 2).split('\n')) {
    const [, signer, encoded = ''] = /^— (\S+) (\S+)$/.exec(line) ?? [];
    if (signer !== name) continue;
    const bytes = fromBase64(encoded);
    if (bytes.length !== 68 || toHex(bytes.subarray(0, 4)) !== keyId) continue;
    const signed = encoder.encode(note.slice(0, end + 1));
    if (await crypto.subtle.verify({ name: 'Ed25519' }, key, bytes.slice(4), signed))
      return { size: Number(count), root: fromBase64(root) };
  }
  return null;
};

export interface InclusionProof {
  readonly entry: string;
  readonly checkpoint: { readonly note: string };
  readonly hashes: readonly string[];
}

/** What is wrong with the proof of the record, or the checkpoint that covers it. */
export const verifyRecord = async (
  sequence: number,
  { entry, checkpoint: { note }, hashes }: InclusionProof,
  verifierKey: string,
): Promise<Checkpoint | string> => {
  const checkpoint = await readCheckpoint(note, await readVerifier(verifierKey));
  if (checkpoint === null) return 'The checkpoint is not signed with the key of this log.';
  if ((JSON.parse(entry) as { readonly sequence?: unknown }).sequence !== sequence)
    return 'The proof is for another record.';
  let fn = sequence - 1;
  let sn = checkpoint.size - 1;
  let hash = await leafHash(entry);
  for (const text of hashes) {
    const step = fromBase64(text);
    if (fn % 2 === 1 || fn === sn) {
      hash = await nodeHash(step, hash);
      while (fn % 2 === 0 && fn !== 0) {
        fn /= 2;
        sn = Math.floor(sn / 2);
      }
    } else hash = await nodeHash(hash, step);
    fn = Math.floor(fn / 2);
    sn = Math.floor(sn / 2);
  }
  return sn === 0 && equal(hash, checkpoint.root) ? checkpoint : 'The record differs from the signed one.';
};

export interface LogVerdict {
  readonly records: number;
  readonly checkpoints: number;
  /** Records that a good checkpoint covers. */
  readonly signed: number;
  /** The first fault; null: none. */
  readonly finding: string | null;
}

async function* linesOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}

/** Reads an export line by line and keeps the tree in a few hashes. Stops at the first fault. */
export const verifyExport = async (
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  verifierKey: string,
  onProgress: (records: number) => void,
): Promise<LogVerdict> => {
  const verifier = await readVerifier(verifierKey);
  const edge: { readonly leaves: number; readonly hash: Bytes }[] = [];
  let [records, checkpoints, signed] = [0, 0, 0];
  const stop = (finding: string): LogVerdict => ({ records, checkpoints, signed, finding });
  for await (const line of linesOf(body)) {
    const value = JSON.parse(line) as { readonly checkpoint?: string; readonly sequence?: number };
    if (value.checkpoint === undefined) {
      if (value.sequence !== records + 1)
        return stop(`Record ${records + 1} was expected, but record ${value.sequence ?? '?'} was found.`);
      let last = { leaves: 1, hash: await leafHash(line) };
      for (let left = edge.at(-1); left?.leaves === last.leaves; left = edge.at(-1)) {
        edge.pop();
        last = { leaves: last.leaves * 2, hash: await nodeHash(left.hash, last.hash) };
      }
      edge.push(last);
      records += 1;
      if (records % 500 === 0) onProgress(records);
      continue;
    }
    checkpoints += 1;
    const checkpoint = await readCheckpoint(value.checkpoint, verifier);
    if (checkpoint === null)
      return stop(`The checkpoint after record ${records} is not signed with the key of this log.`);
    let root: Bytes | undefined;
    for (const { hash } of edge.toReversed()) root = root === undefined ? hash : await nodeHash(hash, root);
    if (checkpoint.size !== records || root === undefined || !equal(root, checkpoint.root))
      return stop(`Records ${signed + 1} to ${records} do not match the checkpoint after them.`);
    signed = records;
  }
  if (records === 0) return stop('The export has no records.');
  const finding = signed < records ? `Records ${signed + 1} to ${records} are not covered by a checkpoint.` : null;
  return { records, checkpoints, signed, finding };
};
