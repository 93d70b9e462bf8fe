// The part of the addon that the server uses. Types only; `native/core.ts` gives the implementation.

import type { Core } from '../../addon/core.ts';

export type {
  CipherParameters,
  Digest,
  Direction,
  KeyDescription,
  KeyRef,
  MacParameters,
  MemoryStatus,
  OaepParameters,
  RecordContext,
  RootFile,
  SignatureParameters,
  UnwrappedKind,
} from '../../addon/core.ts';

export type CryptoCore = Pick<
  Core,
  | 'memoryStatus'
  | 'wipe'
  | 'random'
  | 'timingSafeEqual'
  | 'generateAes'
  | 'generateGeneric'
  | 'generateKek'
  | 'importSecret'
  | 'importPrivateKey'
  | 'exportSecret'
  | 'describe'
  | 'checkValue'
  | 'release'
  | 'cipher'
  | 'cipherLength'
  | 'mac'
  | 'sealRecord'
  | 'openRecord'
  | 'peekRecord'
  | 'generateRsaLater'
  | 'generateEc'
  | 'generateEd25519'
  | 'importPublicKey'
  | 'exportPrivateKey'
  | 'exportPublicKey'
  | 'sign'
  | 'oaepDecrypt'
  | 'wrapKey'
  | 'wrapKeyCipher'
  | 'wrapKeyOaep'
  | 'unwrapKey'
  | 'unwrapKeyCipher'
  | 'unwrapKeyOaep'
  | 'ecdh'
  | 'hkdf'
  | 'deriveByEncryption'
  | 'hpkeSealKey'
  | 'generateHpkeKey'
  | 'hpkePublicKey'
  | 'hpkeOpenKey'
  | 'hpkeSealKek'
  | 'hpkeOpenKek'
  | 'generateSecretAccessKey'
>;
