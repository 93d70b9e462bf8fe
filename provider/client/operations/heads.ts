// The core's parameters as the service takes them (server/fronts/contract/tde.ts): bytes as Base64. None of them is secret.
import type {
  CipherParameters,
  MacParameters,
  OaepParameters,
  RsaEncryptionParameters,
  SignatureParameters,
} from '../../../addon/core.ts';
import type {
  CipherHead,
  DeriveHead,
  MacHead,
  OaepHead,
  Pkcs1Head,
  SignatureHead,
  WrapHead,
} from '../../../server/fronts/contract/tde.ts';
import type { DeriveParameters, WrapParameters } from './mechanism-row.ts';
import { partsFor } from './sp800-108.ts';

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

const oaepHead = ({ digest, mgfDigest, label }: OaepParameters): OaepHead => ({
  mode: 'oaep',
  digest,
  mgfDigest,
  label: base64(label ?? noBytes),
});

export const rsaEncryptionHead = (parameters: RsaEncryptionParameters): OaepHead | Pkcs1Head =>
  parameters.padding === 'oaep' ? oaepHead(parameters) : { mode: 'rsa-pkcs1' };

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
    case 'ed448':
      return { algorithm: parameters.algorithm };
  }
};

export const wrapHead = (parameters: WrapParameters): WrapHead => {
  switch (parameters.way) {
    case 'key-wrap': {
      const { iv, ...head } = parameters;
      return iv === undefined ? head : { ...head, iv: base64(iv) };
    }
    case 'cipher':
      return { way: 'cipher', cipher: cipherHead(parameters.cipher) };
    case 'oaep':
      return { way: 'oaep', oaep: oaepHead(parameters.oaep) };
  }
};

/** `bytes`: of the key that is derived. */
export const deriveHead = (parameters: DeriveParameters, bytes: number): DeriveHead => {
  if (parameters.way === 'sp800-108') {
    const { data, iv, ...parts } = partsFor(parameters, bytes);
    return { way: 'sp800-108', prf: macHead(parameters.prf), ...parts, data: base64(data), iv: base64(iv) };
  }
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
