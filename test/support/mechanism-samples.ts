// Names that several tests of mechanisms need: rows of a template, the core's digests by their
// mechanism, and curves by their parameters.

import { CKG } from '../../provider/schema/constants.ts';
import { CKM } from '../../provider/schema/mechanisms.ts';
import type { AttributeValue } from '../../provider/schema/types.ts';
import type { DigestName } from '../../server/base/digests.ts';

export type Row = readonly [number, AttributeValue];

/** What the standard calls the core's digests: mechanism, and mask generation function. */
export const digestMechanisms = {
  sha1: { hash: CKM.SHA_1, mgf: CKG.MGF1_SHA1 },
  sha224: { hash: CKM.SHA224, mgf: CKG.MGF1_SHA224 },
  sha256: { hash: CKM.SHA256, mgf: CKG.MGF1_SHA256 },
  sha384: { hash: CKM.SHA384, mgf: CKG.MGF1_SHA384 },
  sha512: { hash: CKM.SHA512, mgf: CKG.MGF1_SHA512 },
  'sha512-224': { hash: CKM.SHA512_224, mgf: null },
  'sha512-256': { hash: CKM.SHA512_256, mgf: null },
  'sha3-224': { hash: CKM.SHA3_224, mgf: CKG.MGF1_SHA3_224 },
  'sha3-256': { hash: CKM.SHA3_256, mgf: CKG.MGF1_SHA3_256 },
  'sha3-384': { hash: CKM.SHA3_384, mgf: CKG.MGF1_SHA3_384 },
  'sha3-512': { hash: CKM.SHA3_512, mgf: CKG.MGF1_SHA3_512 },
} as const satisfies Record<DigestName, { hash: number; mgf: number | null }>;

const curves: Readonly<Record<string, string>> = {
  p256: '06082a8648ce3d030107',
  ed25519: '06032b6570',
  x25519: '06032b656e',
};

export const curve = (name: string): Buffer => Buffer.from(curves[name] ?? '', 'hex');
