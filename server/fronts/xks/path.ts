// The addresses of the XKS proxy, matched byte for byte: no normalising of slashes, dots, percent-encoding or case, and no
// query. What does not match here does not exist.

export type XksPathOperation = 'health' | 'metadata' | 'encrypt' | 'decrypt';

export type XksPath =
  | { readonly prefix: string; readonly operation: 'health'; readonly externalKeyId: null }
  | { readonly prefix: string; readonly operation: 'metadata' | 'encrypt' | 'decrypt'; readonly externalKeyId: string };

// The whole path has at most 128 characters before `/health` or `/keys`; an external key id has 1 to 128.
const allowed =
  /^\/xks\/([A-Za-z0-9_-]{1,64})\/kms\/xks\/v1\/(?:(health)|keys\/([A-Za-z0-9._-]{1,128})\/(metadata|encrypt|decrypt))$/;

/** True for what the XKS front answers, well-formed or not. */
export const isXksPath = (target: string | undefined): boolean => target?.startsWith('/xks/') === true;

const parse = (target: string): XksPath | null => {
  const match = allowed.exec(target);
  if (match === null) return null;
  const [, prefix = '', health, externalKeyId = '', operation] = match;
  if (health !== undefined) return { prefix, operation: 'health', externalKeyId: null };
  // `keys/..` and `keys/.` are dot segments, not key ids.
  if (externalKeyId === '.' || externalKeyId === '..') return null;
  return { prefix, operation: operation as 'metadata' | 'encrypt' | 'decrypt', externalKeyId };
};

const mostKept = 1024;
const kept = new Map<string, XksPath>();

/** Null when there is no such path. Remembers its answers: few targets are asked for again and again. */
export const parseXksPath = (target: string): XksPath | null => {
  const known = kept.get(target);
  if (known !== undefined) return known;
  const path = parse(target);
  if (path === null) return null;
  // Invented targets only make all others be parsed again.
  if (kept.size >= mostKept) kept.clear();
  kept.set(target, path);
  return path;
};
