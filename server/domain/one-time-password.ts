// One-time passwords by time: TOTP (RFC 6238) over HOTP (RFC 4226), SHA-1, six digits, steps of 30
// seconds: what every authenticator app takes. The HMAC is made where the secret is, in the addon;
// here is what stands around it.

export const totpDigits = 6;
const stepMs = 30_000;
/** RFC 4226 section 4, R6: 160 bits. */
export const totpSecretBytes = 20;

/** The number of the time step. */
export const totpStep = (now: number): number => Math.floor(now / stepMs);

/**
 * The steps whose code is accepted now: this one and its neighbours, for clocks that differ. No
 * step that was used before.
 */
export const totpSteps = (now: number, lastUsed: number): readonly number[] =>
  [-1, 0, 1].map((apart) => totpStep(now) + apart).filter((step) => step > lastUsed && step >= 0);

/** The message of the HMAC: 8 bytes, the highest first. */
export const totpMessage = (step: number): Uint8Array => {
  const message = new Uint8Array(8);
  const view = new DataView(message.buffer);
  view.setUint32(0, Math.floor(step / 2 ** 32));
  view.setUint32(4, step >>> 0);
  return message;
};

/** RFC 4226 section 5.3: the digits, as ASCII. */
export const truncateMac = (mac: Uint8Array): Uint8Array => {
  const at = (mac[mac.length - 1] ?? 0) & 0x0f;
  const view = new DataView(mac.buffer, mac.byteOffset, mac.byteLength);
  let rest = (view.getUint32(at) & 0x7fffffff) % 10 ** totpDigits;
  const digits = new Uint8Array(totpDigits);
  for (let index = totpDigits - 1; index >= 0; index -= 1) {
    digits[index] = 0x30 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
  return digits;
};

const alphabet = new TextEncoder().encode('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567');

/** Base32 (RFC 4648 section 6) without padding, as ASCII bytes: what it is of may be a secret. */
export const encodeBase32 = (bytes: Uint8Array): Uint8Array => {
  const text = new Uint8Array(Math.ceil((bytes.length * 8) / 5));
  let bits = 0;
  let held = 0;
  let to = 0;
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text[to] = alphabet[(held >> bits) & 31] ?? 0;
      to += 1;
    }
  }
  if (bits > 0) text[to] = alphabet[(held << (5 - bits)) & 31] ?? 0;
  return text;
};

/**
 * A recovery code as it was given out, of one as people write it down: in capitals, without white
 * space and hyphens.
 */
export const plainRecoveryCode = (typed: Uint8Array): Uint8Array =>
  typed
    .filter((byte) => byte > 0x20 && byte !== 0x2d)
    .map((byte) => (byte >= 0x61 && byte <= 0x7a ? byte - 0x20 : byte));
