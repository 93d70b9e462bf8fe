// The part of the addon that the server uses. Types only; `adapters/crypto/open-core.ts` gives the
// implementation.

import type { Core } from '../../addon/core.ts';

export type {
  AeadParameters,
  CipherParameters,
  Curve,
  DeriveParameters,
  KekRef,
  KeyDescription,
  KeyRef,
  MacParameters,
  MemoryStatus,
  RecordContext,
  RsaEncryptionParameters,
  SealedPart,
  SignatureParameters,
  UnwrappedKind,
  WrapParameters,
} from '../../addon/core.ts';

export type CryptoCore = Pick<
  Core,
  | 'libcryptoVersion'
  | 'memoryStatus'
  | 'wipe'
  | 'random'
  | 'argon2idLater'
  | 'timingSafeEqual'
  | 'newIvOwner'
  | 'endIvOwner'
  | 'ivUsed'
  | 'claimIv'
  | 'generateAes'
  | 'generateGeneric'
  | 'generateKek'
  | 'importSecret'
  | 'exportSecret'
  | 'describe'
  | 'checkValue'
  | 'release'
  | 'cipher'
  | 'cipherLength'
  | 'cipherPart'
  | 'macPart'
  | 'mac'
  | 'sealRecord'
  | 'openRecord'
  | 'resealRecord'
  | 'peekRecord'
  | 'generateRsaLater'
  | 'generateEc'
  | 'importPublicKey'
  | 'exportPrivateKey'
  | 'exportPublicKey'
  | 'sign'
  | 'signLater'
  | 'rsaDecrypt'
  | 'rsaDecryptLater'
  | 'wrapKey'
  | 'unwrapKey'
  | 'unwrapKeyLater'
  | 'hkdf'
  | 'derive'
  | 'hpkeSealKey'
  | 'generateHpkeKey'
  | 'deriveHpkeKey'
  | 'hpkePublicKey'
  | 'hpkeOpenKey'
  | 'hpkeOpenKeyLater'
  | 'hpkeSealKek'
  | 'hpkeOpenKek'
  | 'generateSecretAccessKey'
>;
