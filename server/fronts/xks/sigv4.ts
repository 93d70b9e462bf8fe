// Verifies AWS Signature Version 4 (service kms-xks-proxy) on the bytes as they came: raw path, raw headers, raw body.
//
// A pure function of the request, the endpoint's credentials and the clock, but for the cache of signing keys. It leaves out
// what the proxy protocol has no use for: query-string signing, session tokens, unsigned or chunked payloads.

import { refusalReasons } from '../../base/refusal-reasons.ts';
import type { KeyRef, XksCrypto } from '../../ports/xks-crypto.ts';
import type { XksCredentialView } from '../../ports/xks-directory.ts';
import type { SigningKeys } from './signing-keys.ts';

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

const authorizationShape =
  /^AWS4-HMAC-SHA256 Credential=([^\s,/]{1,128})\/(\d{8})\/([a-zA-Z0-9-]{1,64})\/([a-z0-9-]{1,64})\/aws4_request, ?SignedHeaders=([a-z0-9!#$%&'*+.^_`|~;-]{1,2048}), ?Signature=([0-9a-f]{64})$/;
const dateShape = /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/;
const onceOnly = new Set(['authorization', 'host', 'x-amz-date', 'x-amz-content-sha256']);
const signatureLength = 64;
const maxShapes = 256;

/** What an Authorization header says before its signature: the same for all requests of a credential in a day. */
interface Shape {
  readonly accessKeyId: string;
  readonly scopeDate: string;
  readonly region: string;
  readonly service: string;
  readonly signedHeaderList: string;
  readonly signed: readonly string[];
}

const trimmed = (value: string): string => (/^\s|\s\s|\s$/.test(value) ? value.trim().replace(/\s+/g, ' ') : value);

const parseDate = (text: string): number | null => {
  const match = dateShape.exec(text);
  if (match === null) return null;
  const [, year, month, day, hour, minute, second] = match;
  const iso = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const time = Date.parse(iso);
  // Date.parse takes some dates that do not exist; they do not come back the same.
  return Number.isNaN(time) || new Date(time).toISOString() !== iso ? null : time;
};

/** parseDate, remembering the last answer: requests of one second bear one date. */
const createDateReader = (): ((text: string) => number | null) => {
  let lastText = '';
  let lastTime: number | null = null;
  return (text) => {
    if (text !== lastText) [lastText, lastTime] = [text, parseDate(text)];
    return lastTime;
  };
};

/** Header values by lower-case name, in the order they came; HTTP/2's :authority is the host. Null when one may not repeat. */
const collectHeaders = (rawHeaders: readonly string[]): Map<string, string | string[]> | null => {
  const headers = new Map<string, string | string[]>();
  let authority: string | undefined;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] as string).toLowerCase();
    const value = rawHeaders[index + 1] as string;
    if (name.charCodeAt(0) === 0x3a) {
      if (name === ':authority') authority = value;
      continue;
    }
    const before = headers.get(name);
    if (before === undefined) headers.set(name, value);
    else if (onceOnly.has(name)) return null;
    else if (typeof before === 'string') headers.set(name, [before, value]);
    else before.push(value);
  }
  if (authority !== undefined && !headers.has('host')) headers.set('host', authority);
  return headers;
};

const only = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

export const createSigV4 = (core: XksCrypto, signingKeys: SigningKeys): SigV4 => {
  // What an unknown access key id is checked against, so that it takes the time that a known one takes.
  const nobody: KeyRef = core.generateGeneric(64);
  const refuse = (reason: string): Verification => ({ ok: false, reason });
  const readDate = createDateReader();

  // Kept only after a signature has verified, so that strangers do not fill it. A Map's first entry is its oldest.
  const shapes = new Map<string, Shape>();
  const keepShape = (prefix: string, shape: Shape): void => {
    shapes.set(prefix, shape);
    const [oldest] = shapes.keys();
    if (shapes.size > maxShapes && oldest !== undefined) shapes.delete(oldest);
  };
  const readShape = (authorization: string): Shape | null => {
    const match = authorizationShape.exec(authorization);
    if (match === null) return null;
    const [, accessKeyId = '', scopeDate = '', region = '', service = '', signedHeaderList = ''] = match;
    return { accessKeyId, scopeDate, region, service, signedHeaderList, signed: signedHeaderList.split(';') };
  };

  const verify = (request: SignedRequest, credentials: readonly XksCredentialView[], now: number): Verification => {
    if (request.target.includes('?')) return refuse('the target has a query');
    const headers = collectHeaders(request.rawHeaders);
    if (headers === null) return refuse('a header stands twice');
    const authorization = only(headers.get('authorization'));
    if (authorization === undefined) return refuse('no Authorization header');
    const prefix = authorization.slice(0, -signatureLength);
    const signature = authorization.slice(-signatureLength);
    const known = shapes.get(prefix);
    const shape = known ?? readShape(authorization);
    if (shape === null) return refuse('the Authorization header is not of the expected shape');
    const { accessKeyId, scopeDate, region, service, signedHeaderList, signed } = shape;

    const date = only(headers.get('x-amz-date'));
    const time = date === undefined ? null : readDate(date);
    if (date === undefined || time === null) return refuse('x-amz-date is missing or malformed');
    if (date.slice(0, 8) !== scopeDate) return refuse('the scope is of another day than x-amz-date');
    if (service !== xksService) return refuse('the scope is of another service');

    if (signed.length > maxSignedHeaders) return refuse('too many signed headers');
    let canonicalHeaders = '';
    let previous = '';
    for (const name of signed) {
      if (name <= previous) return refuse('the signed headers are not sorted, or one stands twice');
      previous = name;
      const values = headers.get(name);
      if (values === undefined) return refuse('a signed header was not sent');
      canonicalHeaders += `${name}:${typeof values === 'string' ? trimmed(values) : values.map(trimmed).join(',')}\n`;
    }
    if (!signed.includes('host') || !signed.includes('x-amz-date')) return refuse('host and x-amz-date must be signed');

    const head = `${request.method}\n${request.target}\n\n${canonicalHeaders}\n${signedHeaderList}\n`;
    const scope = `AWS4-HMAC-SHA256\n${date}\n${scopeDate}/${region}/${service}/aws4_request\n`;
    const statedHash = only(headers.get('x-amz-content-sha256')) ?? '';

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
    if (known === undefined) keepShape(prefix, shape);
    // Last, so that the clock's answer is not given to those who cannot sign.
    const behind = Math.round((now - time) / 1000);
    if (Math.abs(now - time) > maxSkewMs)
      return refuse(`${refusalReasons.skew} ${Math.abs(behind)} s ${behind > 0 ? 'before' : 'after'} this clock`);
    return { ok: true, credential };
  };

  return { verify };
};
