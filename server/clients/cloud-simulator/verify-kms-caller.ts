// Checks what callers of the simulated cloud signed: AWS Signature Version 4. Secrets and signing
// keys stay in the addon. Left out: query-string signing, session tokens, chunked payloads.

import type { CloudCrypto, KeyRef } from './crypto.ts';
import { KmsException } from './exceptions.ts';

export interface AccessKey {
  readonly accessKeyId: string;
  /** The secret access key's characters, a generic key. */
  readonly secret: KeyRef;
}

const maxSkewMs = 5 * 60 * 1000;
const shape =
  /^AWS4-HMAC-SHA256 Credential=([^\s,/]{1,128})\/(\d{8})\/([a-z0-9-]{1,64})\/([a-z0-9-]{1,64})\/aws4_request, ?SignedHeaders=([a-z0-9;-]{1,1024}), ?Signature=([0-9a-f]{64})$/;
const dateShape = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;

export interface CallerRequest {
  readonly target: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Uint8Array;
}

/** Throws the exception that the key service answers an unsigned or wrongly signed POST with. */
export const verifyCaller = (
  crypto: CloudCrypto,
  key: AccessKey,
  request: CallerRequest,
  service: string,
  now: number,
): void => {
  const { authorization } = request.headers;
  if (authorization === undefined)
    throw new KmsException('MissingAuthenticationTokenException', 'the request is not signed');
  const match = shape.exec(String(authorization));
  const date = String(request.headers['x-amz-date'] ?? '');
  const time = Date.parse(date.replace(dateShape, '$1-$2-$3T$4:$5:$6Z'));
  if (match === null || Number.isNaN(time))
    throw new KmsException('IncompleteSignatureException', 'Authorization or X-Amz-Date is malformed');
  const [, accessKeyId, scopeDate = '', region = '', signedService = '', list = '', signature = ''] = match;
  const names = list.split(';');
  if (accessKeyId !== key.accessKeyId)
    throw new KmsException('UnrecognizedClientException', 'the access key id is unknown');
  if (signedService !== service || date.slice(0, 8) !== scopeDate || Math.abs(now - time) > maxSkewMs)
    throw new KmsException('InvalidSignatureException', 'the scope or the time of the signature does not fit');
  for (const needed of ['host', 'x-amz-date', 'x-amz-target'])
    if (!names.includes(needed)) throw new KmsException('IncompleteSignatureException', `${needed} is not signed`);
  const headers = names.map((name) => {
    const value = request.headers[name];
    return `${name}:${(Array.isArray(value) ? value.join(',') : (value ?? '')).trim().replace(/ +/g, ' ')}\n`;
  });
  const head = `POST\n${request.target}\n\n${headers.join('')}\n${list}\n`;
  const scope = `AWS4-HMAC-SHA256\n${date}\n${scopeDate}/${region}/${service}/aws4_request\n`;
  const signingKey = crypto.sigv4SigningKey(key.secret, scopeDate, region, service);
  try {
    const stated = String(request.headers['x-amz-content-sha256'] ?? '');
    if (!crypto.sigv4Verify(signingKey, head, request.body, scope, signature, stated))
      throw new KmsException('InvalidSignatureException', 'the signature does not match');
  } finally {
    crypto.release(signingKey);
  }
};
