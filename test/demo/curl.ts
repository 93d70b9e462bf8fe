// Signs with curl, a signer that shares no code with ours. The secret access key reaches curl
// through a configuration file on standard input: nothing secret is in a process list.

import { spawn } from 'node:child_process';

export interface CurlRequest {
  readonly url: string;
  readonly caFile: string;
  readonly body: string;
  readonly accessKeyId: string;
  /** The characters of the secret access key. */
  readonly secretAccessKey: Buffer;
  /** Sent as x-amz-date instead of curl's own clock, for example '20200101T000000Z'. */
  readonly date?: string;
}

export interface CurlAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The command that a person would type for the request; the secret stays a variable. */
export const curlLine = (request: CurlRequest): string =>
  `curl --aws-sigv4 aws:amz:us-east-1:kms-xks-proxy --user "${request.accessKeyId}:$SECRET" -d '${request.body}' ${request.url}`;

/** POSTs with `curl --aws-sigv4`. Rejects when curl itself fails (TLS, connection). */
export const curlXks = async (request: CurlRequest): Promise<CurlAnswer> => {
  const args = [
    '--silent',
    '--show-error',
    '--config',
    '-',
    '--cacert',
    request.caFile,
    '--aws-sigv4',
    'aws:amz:us-east-1:kms-xks-proxy',
    '--header',
    'Content-Type: application/json',
    ...(request.date === undefined ? [] : ['--header', `X-Amz-Date: ${request.date}`]),
    '--data-binary',
    request.body,
    '--write-out',
    '\n%{http_code}',
    request.url,
  ];
  const child = spawn('curl', args, { stdio: ['pipe', 'pipe', 'pipe'] });
  const configuration = Buffer.concat([
    Buffer.from(`user = "${request.accessKeyId}:`),
    request.secretAccessKey,
    Buffer.from('"\n'),
  ]);
  child.stdin.end(configuration, () => configuration.fill(0));
  const output: Buffer[] = [];
  const errors: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
  const code = await new Promise<number | null>((resolve, reject) => child.on('close', resolve).on('error', reject));
  if (code !== 0) throw new Error(`curl ended with ${code}: ${Buffer.concat(errors).toString('utf8').trim()}`);
  const text = Buffer.concat(output).toString('utf8');
  const cut = text.lastIndexOf('\n');
  return { status: Number(text.slice(cut + 1)), body: JSON.parse(text.slice(0, cut)) as CurlAnswer['body'] };
};
