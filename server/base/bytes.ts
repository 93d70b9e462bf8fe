// Bytes as text and back, strictly. Node's decoders accept bad input in silence; these do not.

/**
 * Decodes canonical, padded, standard Base64 (RFC 4648 section 4). Null when the text is anything
 * else.
 */
export const parseBase64 = (text: string): Buffer | null => {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
};

export const toBase64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');

/**
 * One text for one value: JSON without white space, members sorted by code unit, no undefined. What
 * is authenticated is written in this form. Numbers must be safe integers.
 */
export const canonicalJson = (value: unknown): string => {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw new RangeError('canonical JSON holds safe integers only');
    return String(value);
  }
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object') {
    const members = Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`);
    return `{${members.join(',')}}`;
  }
  throw new RangeError(`canonical JSON cannot hold a ${typeof value}`);
};

/** PEM (RFC 7468) of DER that is Base64 already. */
export const toPem = (label: string, base64: string): string =>
  `-----BEGIN ${label}-----\n${base64.replaceAll(/.{1,64}/g, '$&\n')}-----END ${label}-----\n`;
