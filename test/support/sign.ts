// Signs requests to the XKS proxy with @smithy/signature-v4, a signer that shares no code with the
// verifier.

import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';

/** The checksum class that the signer asks for, over node:crypto. */
class Sha256 {
  readonly #state: Hash | Hmac;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    if (secret === undefined) this.#state = createHash('sha256');
    else if (typeof secret === 'string') this.#state = createHmac('sha256', secret);
    else if (ArrayBuffer.isView(secret))
      this.#state = createHmac('sha256', new Uint8Array(secret.buffer, secret.byteOffset, secret.byteLength));
    else this.#state = createHmac('sha256', new Uint8Array(secret));
  }
  update(data: Uint8Array): void {
    this.#state.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#state.digest();
  }
  reset(): void {
    throw new Error('a used checksum cannot be reset');
  }
}

export interface SigningRequest {
  readonly host: string;
  readonly path: string;
  readonly body: string | Uint8Array;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly date?: Date;
  readonly region?: string;
  readonly service?: string;
  /** Signed next to those that always are. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Header names and values to send with the POST, Authorization included. */
export const signXksRequest = async (request: SigningRequest): Promise<Record<string, string>> => {
  const signer = new SignatureV4({
    service: request.service ?? 'kms-xks-proxy',
    region: request.region ?? 'us-east-1',
    credentials: { accessKeyId: request.accessKeyId, secretAccessKey: request.secretAccessKey },
    sha256: Sha256,
    uriEscapePath: false,
    applyChecksum: false,
  });
  const signed = await signer.sign(
    {
      method: 'POST',
      protocol: 'https:',
      hostname: request.host,
      path: request.path,
      headers: { host: request.host, 'content-type': 'application/json', ...request.headers },
      query: {},
      body: request.body,
    },
    { signingDate: request.date ?? new Date() },
  );
  return signed.headers;
};
