// Reads what a request says about its signature (AWS Signature Version 4): the Authorization
// header, the places of the signed headers, the date. Nothing is decided here but whether it can be
// read.

const authorizationFormat =
  /^AWS4-HMAC-SHA256 Credential=([^\s,/]{1,128})\/(\d{8})\/([a-zA-Z0-9-]{1,64})\/([a-z0-9-]{1,64})\/aws4_request, ?SignedHeaders=([a-z0-9!#$%&'*+.^_`|~;-]{1,2048}), ?Signature=([0-9a-f]{64})$/;
const dateFormat = /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/;
const maxSignedHeaders = 64;
/** Hexadecimal digits. */
export const signatureLength = 64;
/** Headers whose second one would leave open which is meant. */
const onceOnly = new Set(['authorization', 'host', 'x-amz-date', 'x-amz-content-sha256']);

/**
 * What an Authorization header says before its signature: the same for all requests of a credential
 * in a day.
 */
export interface AuthorizationPrefix {
  readonly text: string;
  readonly accessKeyId: string;
  readonly scopeDate: string;
  readonly region: string;
  readonly service: string;
  readonly signedHeaderList: string;
  readonly signed: readonly string[];
  /** Why no request with these signed headers is taken. */
  readonly objection: string | undefined;
}

/**
 * The positions of a request's headers among its raw ones: the same for all requests of one client.
 */
export interface HeaderPositions {
  /** The names as they came. */
  readonly names: readonly string[];
  /**
   * Positions of the values by lower-case name, in the order they came. Null when one may not
   * repeat and does.
   */
  readonly positions: ReadonlyMap<string, readonly number[]> | null;
  readonly authorization: number | undefined;
  readonly date: number | undefined;
  readonly contentHash: number | undefined;
  /**
   * The positions of the headers that the last prefix signs; undefined when one of them was not
   * sent.
   */
  prefix: AuthorizationPrefix | undefined;
  signedAt: readonly (readonly number[])[] | undefined;
}

const objectionTo = (signed: readonly string[]): string | undefined => {
  if (signed.length > maxSignedHeaders) return 'too many signed headers';
  let previous = '';
  for (const name of signed) {
    if (name <= previous) return 'the signed headers are not sorted, or one is repeated';
    previous = name;
  }
  if (!signed.includes('host') || !signed.includes('x-amz-date')) return 'host and x-amz-date must be signed';
  return undefined;
};

/** Null: not in the format of the header. */
export const readPrefix = (authorization: string): AuthorizationPrefix | null => {
  const match = authorizationFormat.exec(authorization);
  if (match === null) return null;
  const [, accessKeyId = '', scopeDate = '', region = '', service = '', signedHeaderList = ''] = match;
  const text = authorization.slice(0, -signatureLength);
  const signed = signedHeaderList.split(';');
  const objection = objectionTo(signed);
  return { text, accessKeyId, scopeDate, region, service, signedHeaderList, signed, objection };
};

/** Milliseconds since 1970 of a basic ISO 8601 date with its time in UTC; null: it is none. */
export const parseDate = (text: string): number | null => {
  const match = dateFormat.exec(text);
  if (match === null) return null;
  const [, year, month, day, hour, minute, second] = match;
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const time = Date.parse(iso);
  // Date.parse takes some dates that do not exist; they do not come back the same.
  return Number.isNaN(time) || new Date(time).toISOString() !== iso ? null : time;
};

export const readPositions = (rawHeaders: readonly string[]): HeaderPositions => {
  const names: string[] = [];
  let positions: Map<string, number[]> | null = new Map();
  let authority: number | undefined;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const raw = rawHeaders[index] as string;
    names.push(raw);
    const name = raw.toLowerCase();
    if (name.charCodeAt(0) === 0x3a) {
      if (name === ':authority') authority = index + 1;
      continue;
    }
    const before = positions?.get(name);
    if (before === undefined) positions?.set(name, [index + 1]);
    else if (onceOnly.has(name)) positions = null;
    else before.push(index + 1);
  }
  // HTTP/2's :authority is the host.
  if (authority !== undefined && positions?.has('host') === false) positions.set('host', [authority]);
  const first = (name: string): number | undefined => positions?.get(name)?.[0];
  return {
    names,
    positions,
    authorization: first('authorization'),
    date: first('x-amz-date'),
    contentHash: first('x-amz-content-sha256'),
    prefix: undefined,
    signedAt: undefined,
  };
};

/**
 * The positions of the headers that `prefix` signs; undefined: one of them was not sent. The last
 * answer is kept with the positions.
 */
export const signedPositions = (headers: HeaderPositions, prefix: AuthorizationPrefix): HeaderPositions['signedAt'] => {
  if (headers.prefix === prefix) return headers.signedAt;
  const found = prefix.signed.map((name) => headers.positions?.get(name));
  headers.signedAt = found.includes(undefined) ? undefined : (found as readonly (readonly number[])[]);
  headers.prefix = prefix;
  return headers.signedAt;
};
