// Signs requests to the XKS proxy with aws4fetch: the second signer, which shares no code with
// @smithy/signature-v4 (sign.ts) nor with the verifier.

import { AwsV4Signer } from 'aws4fetch';

export interface Aws4FetchRequest {
  readonly method?: string;
  readonly host: string;
  readonly path: string;
  readonly body: string | Uint8Array<ArrayBuffer>;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly date: Date;
  readonly region: string;
  readonly service?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Into the query instead of the Authorization header. */
  readonly presigned?: boolean;
}

export interface SignedByAws4Fetch {
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
}

export const signWithAws4Fetch = async (request: Aws4FetchRequest): Promise<SignedByAws4Fetch> => {
  const signer = new AwsV4Signer({
    method: request.method ?? 'POST',
    url: `https://${request.host}${request.path}`,
    body: request.body,
    accessKeyId: request.accessKeyId,
    secretAccessKey: request.secretAccessKey,
    service: request.service ?? 'kms-xks-proxy',
    region: request.region,
    datetime: request.date.toISOString().replaceAll(/[:-]|\.\d{3}/g, ''),
    headers: { ...request.headers },
    signQuery: request.presigned === true,
    allHeaders: true,
  });
  const { url, headers } = await signer.sign();
  return {
    target: `${url.pathname}${url.search}`,
    headers: { host: request.host, ...Object.fromEntries(headers.entries()) },
  };
};
