// What a node proves with its root key, and the parcel in which it gives a new root key to another
// node. A proof is a record under a root key: that it opens shows who made it, and binds its
// attributes. What it contains is thrown away. When a node proves or gives what: spread-root.ts.

import { labelBytes } from '../../../addon/labels.ts';
import { canonicalJson } from '../../base/bytes.ts';
import { idBytes, serviceTenantId } from '../../base/ids.ts';
import type { CryptoCore, KekRef, KeyRef, RecordContext } from '../../ports/crypto-core.ts';
import type { NodeRootKeys, RootParcel, SeenNode } from '../../ports/node-link.ts';
import type { RootKey } from '../../ports/root-provider.ts';

/**
 * What a node proves, each under a class of its own: which root keys it has, and that it has sealed
 * a new one to another node.
 */
interface Proof {
  readonly class: 'node-root-keys' | 'root-parcel';
  readonly attributes: Readonly<Record<string, string | number>>;
}

const info = labelBytes('dke root key for another node');
const aadOf = (id: string, epoch: number): Buffer => Buffer.from(`${id} ${epoch}`, 'utf8');
const headLength = 2;

const proofContext = (id: string, epoch: number, proof: Proof): RecordContext => ({
  tenant: idBytes(serviceTenantId),
  object: idBytes(id),
  version: 1,
  epoch,
  class: proof.class,
  attributes: Buffer.from(canonicalJson(proof.attributes), 'utf8'),
});

/** What a node says about its root keys. */
export const ofKeys = (keys: Pick<NodeRootKeys, 'publicKey' | 'oldestRootEpoch'>): Proof => ({
  class: 'node-root-keys',
  attributes: { publicKey: keys.publicKey.toString('hex'), oldestRootEpoch: keys.oldestRootEpoch },
});

/** `id`: the node that it is about. */
export const prove = (core: CryptoCore, key: RootKey, id: string, proof: Proof): Buffer => {
  const nothing = core.generateGeneric(32);
  try {
    return core.sealRecord(key.key, proofContext(id, key.epoch, proof), nothing);
  } finally {
    core.release(nothing);
  }
};

export const isProofOf = (
  core: CryptoCore,
  key: RootKey | undefined,
  id: string,
  proof: Proof,
  given: Buffer,
): boolean => {
  if (key === undefined) return false;
  try {
    core.release(core.openRecord(key.key, proofContext(id, key.epoch, proof), given));
    return true;
  } catch {
    return false;
  }
};

const ofParcel = (epoch: number, sealed: Buffer): Proof => ({
  class: 'root-parcel',
  attributes: { rootEpoch: epoch, sealed: sealed.toString('hex') },
});

/** Seals the newest root key to a node, with a proof under the old one. */
export const sealParcel = (
  core: CryptoCore,
  { id, publicKey }: Pick<SeenNode, 'id' | 'publicKey'>,
  { epoch, key }: RootKey,
  old: RootKey,
): RootParcel => {
  const sealed = core.hpkeSealKek(publicKey, info, aadOf(id, epoch), key);
  const proof = prove(core, old, id, ofParcel(epoch, sealed));
  const head = Buffer.alloc(headLength);
  head.writeUInt16BE(sealed.length);
  return { nodeId: id, epoch, publicKey, sealed: Buffer.concat([head, sealed, proof]) };
};

/**
 * The new root key, which the caller releases. `current`: the root key that this node has.
 * Undefined: no other node has sealed it.
 */
export const openParcel = (
  core: CryptoCore,
  own: { readonly id: string; readonly key: KeyRef; readonly current: RootKey },
  { epoch, sealed: whole }: Pick<RootParcel, 'epoch' | 'sealed'>,
): KekRef | undefined => {
  const length = whole.length < headLength ? 0 : whole.readUInt16BE(0);
  const sealed = whole.subarray(headLength, headLength + length);
  const proof = whole.subarray(headLength + length);
  if (!isProofOf(core, own.current, own.id, ofParcel(epoch, sealed), proof)) return undefined;
  return core.hpkeOpenKek(own.key, info, aadOf(own.id, epoch), sealed);
};
