// Verifies AWS Signature Version 4 (service kms-xks-proxy) on the bytes as they came: raw path, raw
// headers, raw body.
//
// A pure function of the request, the endpoint's credentials and the clock; what it remembers is in
// sigv4-caches.ts. It leaves out what the proxy protocol has no use for: query-string signing,
// session tokens, unsigned or chunked payloads.

import { refusalReasons } from '../../base/refusal-reasons.ts';
import type { KeyRef, XksCrypto } from '../../ports/xks-crypto.ts';
import type { XksCredentialView } from '../../ports/xks-directory.ts';
import { createDateReader, createPositionsReader, createPrefixes, type SigningKeys } from './sigv4-caches.ts';
import { readPrefix, signatureLength, signedPositions } from './sigv4-reading.ts';

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

const trimmed = (value: string): string => (/^\s|\s\s|\s$/.test(value) ? value.trim().replace(/\s+/g, ' ') : value);

export const createSigV4 = (core: XksCrypto, signingKeys: SigningKeys): SigV4 => {
  // What an unknown access key id is checked against, so that it takes the time that a known one
  // takes.
  const nobody: KeyRef = core.generateGeneric(64);
  const refuse = (reason: string): Verification => ({ ok: false, reason });
  const readDate = createDateReader();
  const positionsOf = createPositionsReader();
  const prefixes = createPrefixes();

  const verify = (request: SignedRequest, credentials: readonly XksCredentialView[], now: number): Verification => {
    const { rawHeaders } = request;
    if (request.target.includes('?')) return refuse('the target has a query');
    const headers = positionsOf(rawHeaders);
    if (headers.positions === null) return refuse('a header is repeated');
    const valueAt = (position: number | undefined): string | undefined =>
      position === undefined ? undefined : rawHeaders[position];
    const authorization = valueAt(headers.authorization);
    if (authorization === undefined) return refuse('no Authorization header');
    const known = prefixes.find(authorization);
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
    if (known === undefined) prefixes.keep(prefix);
    // Last, so that the clock's answer is not given to those who cannot sign.
    const behind = Math.round((now - time) / 1000);
    if (Math.abs(now - time) > maxSkewMs)
      return refuse(`${refusalReasons.skew} ${Math.abs(behind)} s ${behind > 0 ? 'before' : 'after'} this clock`);
    return { ok: true, credential };
  };

  return { verify };
};
