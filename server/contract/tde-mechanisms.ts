// Each mechanism with its parameters, declared once. Names and members are those of the core
// (addon/core-types.ts). The agent encodes with this table, the service decodes and checks with it,
// and the compiler compares both ends with the core's types.

import { digestNames } from '../base/digests.ts';
import { gcmTag } from '../base/key-rules.ts';
import { always, bytes, either, flag, integer, nullable, object, oneOf, optional, union } from './tde-codec.ts';

/** Largest body either side accepts, in bytes. */
export const maxEnvelope = 1 << 20;
/**
 * Fewest bytes of a MAC that are verified: shorter ones are guessed byte by byte by who may only
 * verify (SP 800-107, 5.3.3).
 */
export const leastVerifiedMac = 4;

const digest = oneOf(digestNames);
const long = 64 * 1024;
const iv = bytes(16);

const block = { 'aes-ecb': {}, 'aes-cbc': { iv } };
const gcm = { iv: bytes(128), aad: optional(bytes(long)), tagLength: integer(gcmTag.least, gcmTag.most) };
/** `dataLength` is the message's, without its tag. */
const ccm = (most: number) => ({
  ...{ iv: bytes(13), aad: optional(bytes(long)), tagLength: integer(4, 16) },
  dataLength: integer(0, most),
});

export const cipher = union('algorithm', {
  ...block,
  'aes-cbc-pad': { iv },
  'aes-ctr': { iv, counterBits: optional(integer(1, 128)) },
  'aes-gcm': gcm,
  'aes-ccm': ccm(maxEnvelope),
});
/** Ciphers that go part by part: their messages may be longer than one request. */
export const partCipher = union('algorithm', { 'aes-gcm': gcm, 'aes-ccm': ccm(2 ** 31) });

const oaep = { digest, mgfDigest: digest, label: optional(bytes(long)) };
/**
 * RSA (RFC 8017). `pkcs1` is for applications with the compatibility switch `rsa-pkcs1-encryption`.
 */
const rsaEncryption = union('padding', { oaep, pkcs1: {} });
export const decryption = either('padding', rsaEncryption, cipher);

const macs = { hmac: { digest }, 'aes-cmac': {} };
export const mac = union('algorithm', macs);
export const macLength = optional(integer(leastVerifiedMac, 64));
export const verifiedMac = union('algorithm', {
  hmac: { ...macs.hmac, length: macLength },
  'aes-cmac': { length: macLength },
});

/**
 * MACs, and signatures by a private key of what is hashed already: for `rsa-pkcs1` the DigestInfo
 * (or whatever is to be padded), for `rsa-pss` and `ecdsa` the digest, for `ed25519` and `ed448`
 * the message. The answer is the signature; of `ecdsa` both numbers at the curve's length, r first.
 */
export const signing = union('algorithm', {
  ...macs,
  'rsa-pkcs1': {},
  'rsa-pss': { digest, mgfDigest: digest, saltLength: integer(0, 512), prehashed: always(true) },
  ecdsa: { encoding: always('p1363') },
  ed25519: {},
  ed448: {},
});

/**
 * How a key is wrapped: AES key wrap (RFC 3394; `padded`: RFC 5649), under a cipher, or with OAEP.
 * A private key travels as its PKCS#8. `iv`: an initial value other than the RFC's: 8 bytes, 4 when
 * `padded`. AES key wrap that is not padded, and CBC, pad a key with zeros to whole blocks; they
 * are taken off where the destination's `bits` tell the length.
 */
export const wrapping = union('way', {
  'key-wrap': { padded: flag, iv: optional(bytes(8)) },
  cipher: { cipher },
  oaep: { oaep: union('padding', { oaep }) },
});

/**
 * `point` is uncompressed; `kdf` is that of X9.63. HKDF: RFC 5869; `saltKey` is the handle of a
 * secret key of the token whose value is the salt, and that may derive. `sp800-108`: counter mode,
 * or with `previousAt` feedback mode. `encryption`: the key is the front of what the raw request
 * bytes encrypt to, under an AES key that is not sensitive.
 */
export const derivation = union('way', {
  ecdh: { point: bytes(1024), kdf: nullable(digest), shared: bytes(long) },
  hkdf: {
    digest,
    steps: oneOf(['both', 'extract', 'expand']),
    salt: bytes(long),
    saltKey: optional(integer(1, 0x7fffffff)),
    info: bytes(long),
  },
  'sp800-108': {
    prf: mac,
    parts: object({
      data: bytes(4096),
      counterAt: optional(integer(0, 4096)),
      counterBytes: integer(0, 4),
      littleEndian: flag,
      previousAt: optional(integer(0, 4096)),
      counterFirst: flag,
      iv: bytes(4096),
    }),
  },
  encryption: { cipher: union('algorithm', block) },
});
