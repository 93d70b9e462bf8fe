// Signs a POST to an external key store proxy with AWS Signature Version 4, as the cloud key
// service does. The secret access key stays with the implementation of `SignerCrypto`; what is
// signed here is public.

import { createHash } from 'node:crypto';

/** `Key` is the type of a key that is stored elsewhere. */
export interface SignerCrypto<Key> {
  sigv4SigningKey(secret: Key, date: string, region: string, service: string): Key;
  mac(
    key: Key,
    parameters: { readonly algorithm: 'hmac'; readonly digest: 'sha256' },
    data: Uint8Array,
    mac: Uint8Array,
  ): unknown;
  release(key: Key): void;
}

export interface SignerKey<Key> {
  readonly accessKeyId: string;
  /** The secret access key's characters. */
  readonly secret: Key;
}

const amzDate = (now: number): string => new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '');

/** The headers of a signed POST to a proxy. `now`: milliseconds since 1970. */
export const signForProxy = <Key>(
  crypto: SignerCrypto<Key>,
  key: SignerKey<Key>,
  request: { readonly host: string; readonly path: string; readonly region: string; readonly body: Uint8Array },
  now: number,
): Record<string, string> => {
  const date = amzDate(now);
  const day = date.slice(0, 8);
  const list = 'content-type;host;x-amz-date';
  const payload = createHash('sha256').update(request.body).digest('hex');
  const canonical = `POST\n${request.path}\n\ncontent-type:application/json\nhost:${request.host}\nx-amz-date:${date}\n\n${list}\n${payload}`;
  const scope = `${day}/${request.region}/kms-xks-proxy/aws4_request`;
  const hash = createHash('sha256').update(canonical).digest('hex');
  const signature = Buffer.alloc(32);
  const signingKey = crypto.sigv4SigningKey(key.secret, day, request.region, 'kms-xks-proxy');
  try {
    const text = Buffer.from(`AWS4-HMAC-SHA256\n${date}\n${scope}\n${hash}`);
    crypto.mac(signingKey, { algorithm: 'hmac', digest: 'sha256' }, text, signature);
  } finally {
    crypto.release(signingKey);
  }
  return {
    host: request.host,
    'content-type': 'application/json',
    'content-length': String(request.body.length),
    'x-amz-date': date,
    authorization: `AWS4-HMAC-SHA256 Credential=${key.accessKeyId}/${scope}, SignedHeaders=${list}, Signature=${signature.toString('hex')}`,
  };
};
