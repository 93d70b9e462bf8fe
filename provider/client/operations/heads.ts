// The core's parameters as the service takes them (server/fronts/contract/tde.ts): bytes as Base64. None of them is secret.
import type { CipherParameters, MacParameters, OaepParameters, SignatureParameters } from '../../../addon/core.ts';
import type {
  CipherHead,
  DeriveHead,
  MacHead,
  OaepHead,
  SignatureHead,
  WrapHead,
} from '../../../server/fronts/contract/tde.ts';
import type { DeriveParameters, WrapParameters } from './mechanisms.ts';

export const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');

const noBytes = new Uint8Array(0);

export const cipherHead = (parameters: CipherParameters): CipherHead => {
  switch (parameters.algorithm) {
    case 'aes-ecb':
      return { mode: 'ecb' };
    case 'aes-cbc':
      return { mode: 'cbc', iv: base64(parameters.iv) };
    case 'aes-cbc-pad':
      return { mode: 'cbc-pad', iv: base64(parameters.iv) };
    case 'aes-ctr':
      return { mode: 'ctr', iv: base64(parameters.iv), counterBits: parameters.counterBits ?? 128 };
    case 'aes-gcm':
      return {
        mode: 'gcm',
        iv: base64(parameters.iv),
        aad: base64(parameters.aad ?? noBytes),
        tagLength: parameters.tagLength,
      };
    case 'aes-ccm':
      return {
        mode: 'ccm',
        iv: base64(parameters.iv),
        aad: base64(parameters.aad ?? noBytes),
        tagLength: parameters.tagLength,
        dataLength: parameters.dataLength,
      };
  }
};

export const oaepHead = ({ digest, mgfDigest, label }: OaepParameters): OaepHead => ({
  mode: 'oaep',
  digest,
  mgfDigest,
  label: base64(label ?? noBytes),
});

export const macHead = (parameters: MacParameters): MacHead =>
  parameters.algorithm === 'hmac' ? { algorithm: 'hmac', digest: parameters.digest } : { algorithm: 'cmac' };

/** For data that is hashed already, as `SignatureRow.parameters` has it. */
export const signatureHead = (parameters: SignatureParameters): SignatureHead => {
  switch (parameters.algorithm) {
    case 'rsa-pkcs1':
      return { algorithm: 'rsa-pkcs1' };
    case 'rsa-pss': {
      const { digest, mgfDigest, saltLength } = parameters;
      return { algorithm: 'rsa-pss', digest, mgfDigest, saltLength };
    }
    case 'ecdsa':
      return { algorithm: 'ecdsa' };
    case 'ed25519':
      return { algorithm: 'ed25519' };
  }
};

export const wrapHead = (parameters: WrapParameters): WrapHead => {
  switch (parameters.way) {
    case 'key-wrap':
      return parameters;
    case 'cipher':
      return { way: 'cipher', cipher: cipherHead(parameters.cipher) };
    case 'oaep':
      return { way: 'oaep', oaep: oaepHead(parameters.oaep) };
  }
};

export const deriveHead = (parameters: DeriveParameters): DeriveHead => {
  if (parameters.way === 'ecdh') {
    const { point, kdf, shared } = parameters;
    return { way: 'ecdh', point: base64(point), kdf, shared: base64(shared) };
  }
  if (parameters.way === 'encryption') {
    const { cipher } = parameters;
    const head =
      cipher.algorithm === 'aes-ecb' ? ({ mode: 'ecb' } as const) : ({ mode: 'cbc', iv: base64(cipher.iv) } as const);
    return { way: 'encryption', cipher: head };
  }
  const { digest, steps, salt, saltKey, info } = parameters;
  const head = { way: 'hkdf', digest, steps, salt: base64(salt), info: base64(info) } as const;
  return saltKey === null ? head : { ...head, saltKey };
};
