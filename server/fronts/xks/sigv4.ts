// Verifies AWS Signature Version 4 (service kms-xks-proxy) on the bytes as they came: raw path, raw
// headers, raw body.
//
// A pure function of the request, the endpoint's credentials and the clock, but for the cache of
// signing keys. It leaves out what the proxy protocol has no use for: query-string signing, session
// tokens, unsigned or chunked payloads.
//
// Signing keys are kept by credential, day and region: deriving one costs four HMACs, using one
// costs one. A key enters the cache only after a signature under it has verified, so that a
// stranger who invents regions neither fills the cache nor pushes the real ones out.

import { refusalReasons } from '../../base/refusal-reasons.ts';
import type { KeyRef, XksCrypto } from '../../ports/xks-crypto.ts';
import type { XksCredentialView } from '../../ports/xks-directory.ts';

export interface SigningKeys {
  /** Runs `use` with the signing key; keeps the key when `use` answered true. */
  with(secret: KeyRef, date: string, region: string, service: string, use: (key: KeyRef) => boolean): boolean;
}

export const createSigningKeys = (core: XksCrypto, capacity = 256): SigningKeys => {
  // A Map keeps the order of insertion: its first entry is the oldest.
  const cached = new Map<string, KeyRef>();

  /** The one that was used last, found without putting its name together. */
  let last: { secret: KeyRef; date: string; region: string; service: string; key: KeyRef } | undefined;

  const keep = (name: string, key: KeyRef): void => {
    cached.set(name, key);
    if (cached.size <= capacity) return;
    const [oldest] = cached;
    if (oldest === undefined) return;
    cached.delete(oldest[0]);
    if (last?.key === oldest[1]) last = undefined;
    core.release(oldest[1]);
  };

  return {
    with: (secret, date, region, service, use) => {
      if (
        last !== undefined &&
        last.secret === secret &&
        last.date === date &&
        last.region === region &&
        last.service === service
      )
        return use(last.key);
      // A KeyRef is never given twice: a replaced credential has another name here.
      const name = `${secret}/${date}/${region}/${service}`;
      const known = cached.get(name);
      if (known !== undefined) {
        last = { secret, date, region, service, key: known };
        return use(known);
      }
      const derived = core.sigv4SigningKey(secret, date, region, service);
      if (use(derived)) {
        keep(name, derived);
        return true;
      }
      core.release(derived);
      return false;
    },
  };
};

export interface SignedRequest {
  readonly method: string;
  /** The request target as it stood on the request line (HTTP/2: `:path`). */
  readonly target: string;
  /** Names and values in turn, as Node gives them: `[name, value, name, value, ...]`. */
  readonly rawHeaders: readonly string[];
  readonly body: Uint8Array;
}

/** `reason` is for the log, never for the answer: outside, every refusal looks alike. */
export type Verification =
  | { readonly ok: true; readonly credential: XksCredentialView }
  | { readonly ok: false; readonly reason: string };

export interface SigV4 {
  verify(request: SignedRequest, credentials: readonly XksCredentialView[], now: number): Verification;
}

export const xksService = 'kms-xks-proxy';
const maxSkewMs = 5 * 60 * 1000;
const maxSignedHeaders = 64;

const authorizationFormat =
  /^AWS4-HMAC-SHA256 Credential=([^\s,/]{1,128})\/(\d{8})\/([a-zA-Z0-9-]{1,64})\/([a-z0-9-]{1,64})\/aws4_request, ?SignedHeaders=([a-z0-9!#$%&'*+.^_`|~;-]{1,2048}), ?Signature=([0-9a-f]{64})$/;
const dateFormat = /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/;
const onceOnly = new Set(['authorization', 'host', 'x-amz-date', 'x-amz-content-sha256']);
const signatureLength = 64;
const maxPrefixes = 256;
/** Raw headers, names and values, of header positions that are remembered. */
const mostKeptHeaders = 200;

/**
 * What an Authorization header says before its signature: the same for all requests of a credential
 * in a day.
 */
interface AuthorizationPrefix {
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
interface HeaderPositions {
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

const trimmed = (value: string): string => (/^\s|\s\s|\s$/.test(value) ? value.trim().replace(/\s+/g, ' ') : value);

const parseDate = (text: string): number | null => {
  const match = dateFormat.exec(text);
  if (match === null) return null;
  const [, year, month, day, hour, minute, second] = match;
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const time = Date.parse(iso);
  // Date.parse takes some dates that do not exist; they do not come back the same.
  return Number.isNaN(time) || new Date(time).toISOString() !== iso ? null : time;
};

/** parseDate, remembering the last answer: requests of one second have one date. */
const createDateReader = (): ((text: string) => number | null) => {
  let lastText = '';
  let lastTime: number | null = null;
  return (text) => {
    if (text !== lastText) [lastText, lastTime] = [text, parseDate(text)];
    return lastTime;
  };
};

const readPositions = (rawHeaders: readonly string[]): HeaderPositions => {
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

const hasSameNames = ({ names }: HeaderPositions, rawHeaders: readonly string[]): boolean => {
  for (let at = 0; at < names.length; at += 1) if (names[at] !== rawHeaders[2 * at]) return false;
  return true;
};

/**
 * readPositions, remembering the last result for each length: comparing names is much cheaper than
 * sorting them into a map.
 */
const createPositionsReader = (): ((rawHeaders: readonly string[]) => HeaderPositions) => {
  const byLength = new Map<number, HeaderPositions>();
  return (rawHeaders) => {
    const { length } = rawHeaders;
    const known = byLength.get(length);
    if (known !== undefined && hasSameNames(known, rawHeaders)) return known;
    const read = readPositions(rawHeaders);
    if (length <= mostKeptHeaders) byLength.set(length, read);
    return read;
  };
};

const signedPositions = (headers: HeaderPositions, prefix: AuthorizationPrefix): HeaderPositions['signedAt'] => {
  if (headers.prefix === prefix) return headers.signedAt;
  const found = prefix.signed.map((name) => headers.positions?.get(name));
  headers.signedAt = found.includes(undefined) ? undefined : (found as readonly (readonly number[])[]);
  headers.prefix = prefix;
  return headers.signedAt;
};

export const createSigV4 = (core: XksCrypto, signingKeys: SigningKeys): SigV4 => {
  // What an unknown access key id is checked against, so that it takes the time that a known one
  // takes.
  const nobody: KeyRef = core.generateGeneric(64);
  const refuse = (reason: string): Verification => ({ ok: false, reason });
  const readDate = createDateReader();

  const positionsOf = createPositionsReader();

  // Kept only after a signature has verified, so that strangers do not fill it. A Map's first entry
  // is its oldest.
  const prefixes = new Map<string, AuthorizationPrefix>();
  let last: AuthorizationPrefix | undefined;
  const keepPrefix = (prefix: AuthorizationPrefix): void => {
    last = prefix;
    prefixes.set(prefix.text, prefix);
    const [oldest] = prefixes.keys();
    if (prefixes.size > maxPrefixes && oldest !== undefined) prefixes.delete(oldest);
  };
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
  const readPrefix = (authorization: string): AuthorizationPrefix | null => {
    const match = authorizationFormat.exec(authorization);
    if (match === null) return null;
    const [, accessKeyId = '', scopeDate = '', region = '', service = '', signedHeaderList = ''] = match;
    const text = authorization.slice(0, -signatureLength);
    const signed = signedHeaderList.split(';');
    const objection = objectionTo(signed);
    return { text, accessKeyId, scopeDate, region, service, signedHeaderList, signed, objection };
  };
  const knownPrefix = (authorization: string): AuthorizationPrefix | undefined => {
    const length = authorization.length - signatureLength;
    if (last !== undefined && last.text.length === length && authorization.startsWith(last.text)) return last;
    const found = prefixes.get(authorization.slice(0, -signatureLength));
    if (found !== undefined) last = found;
    return found;
  };

  const verify = (request: SignedRequest, credentials: readonly XksCredentialView[], now: number): Verification => {
    const { rawHeaders } = request;
    if (request.target.includes('?')) return refuse('the target has a query');
    const headers = positionsOf(rawHeaders);
    if (headers.positions === null) return refuse('a header is repeated');
    const valueAt = (position: number | undefined): string | undefined =>
      position === undefined ? undefined : rawHeaders[position];
    const authorization = valueAt(headers.authorization);
    if (authorization === undefined) return refuse('no Authorization header');
    const known = knownPrefix(authorization);
    const prefix = known ?? readPrefix(authorization);
    if (prefix === null) return refuse('the Authorization header is not in the expected format');
    const { accessKeyId, scopeDate, region, service, signedHeaderList, signed } = prefix;

    const date = valueAt(headers.date);
    const time = date === undefined ? null : readDate(date);
    if (date === undefined || time === null) return refuse('x-amz-date is missing or malformed');
    if (!date.startsWith(scopeDate)) return refuse('the date of the scope differs from x-amz-date');
    if (service !== xksService) return refuse('the scope is for another service');

    if (prefix.objection !== undefined) return refuse(prefix.objection);
    const signedAt = signedPositions(headers, prefix);
    if (signedAt === undefined) return refuse('a signed header was not sent');
    let canonicalHeaders = '';
    for (let at = 0; at < signed.length; at += 1) {
      const positions = signedAt[at] as readonly number[];
      const value =
        positions.length === 1
          ? trimmed(rawHeaders[positions[0] as number] as string)
          : positions.map((position) => trimmed(rawHeaders[position] as string)).join(',');
      canonicalHeaders += `${signed[at]}:${value}\n`;
    }

    const head = `${request.method}\n${request.target}\n\n${canonicalHeaders}\n${signedHeaderList}\n`;
    const scope = `AWS4-HMAC-SHA256\n${date}\n${scopeDate}/${region}/${service}/aws4_request\n`;
    const statedHash = valueAt(headers.contentHash) ?? '';
    const signature = authorization.slice(-signatureLength);

    const credential = credentials.find((candidate) => candidate.accessKeyId === accessKeyId);
    const verified = signingKeys.with(
      credential?.secret ?? nobody,
      scopeDate,
      region,
      service,
      (key) => core.sigv4Verify(key, head, request.body, scope, signature, statedHash) && credential !== undefined,
    );
    if (credential === undefined) return refuse(`${refusalReasons.unknownKey} ${accessKeyId}`);
    if (!verified) return refuse(refusalReasons.mismatch);
    if (known === undefined) keepPrefix(prefix);
    // Last, so that the clock's answer is not given to those who cannot sign.
    const behind = Math.round((now - time) / 1000);
    if (Math.abs(now - time) > maxSkewMs)
      return refuse(`${refusalReasons.skew} ${Math.abs(behind)} s ${behind > 0 ? 'before' : 'after'} this clock`);
    return { ok: true, credential };
  };

  return { verify };
};
