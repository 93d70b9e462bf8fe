// The published SigV4 signing suite (awslabs/aws-c-auth, 38 requests signed in a header and in the
// query: 76 signings). They are of another service, so the verifier of the proxy refuses each of
// them; its parts are checked against each: the signing key and the comparison as published, the
// canonical form of headers and path with the suite's own canonical requests.
import { createHash, createHmac } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { createSigV4 } from '../../../server/fronts/xks/sigv4.ts';
import { createSigningKeys } from '../../../server/fronts/xks/sigv4-caches.ts';
import { readVectors, vectorFolder } from '../../support/vectors.ts';
import { secretKey } from '../../support/xks-directory.ts';

core.initialize();
const folder = vectorFolder('sigv4', 'v4');

interface Context {
  readonly credentials: { readonly access_key_id: string; readonly secret_access_key: string };
  readonly region: string;
  readonly service: string;
  readonly timestamp: string;
}
interface Signing {
  readonly name: string;
  readonly form: 'header' | 'query';
  readonly context: Context;
  readonly request: string;
  readonly canonical: string;
  readonly stringToSign: string;
  readonly signature: string;
}

const read = (name: string, file: string): string => readFileSync(join(folder ?? '', name, file), 'utf8');
const signings: readonly Signing[] =
  folder === null
    ? []
    : readdirSync(folder).flatMap((name) =>
        (['header', 'query'] as const).map((form) => ({
          name,
          form,
          context: readVectors<Context>(join(folder, name, 'context.json')),
          request: read(name, 'request.txt'),
          canonical: read(name, `${form}-canonical-request.txt`),
          stringToSign: read(name, `${form}-string-to-sign.txt`),
          signature: read(name, `${form}-signature.txt`),
        })),
      );

/** A request of the suite as a parser hands it on: folded lines joined, nothing else done. */
const parse = (request: string) => {
  const [head = '', ...rest] = request.split('\n\n');
  const [line = '', ...lines] = head.replaceAll(/\n(?=[ \t])/g, ' ').split('\n');
  const match = /^(\S+) (.*) HTTP\/1\.1$/.exec(line);
  const headers = lines
    .filter((text) => text !== '')
    .map((text): [string, string] => {
      const colon = text.indexOf(':');
      return [text.slice(0, colon), text.slice(colon + 1).trim()];
    });
  return { method: match?.[1] ?? '', target: match?.[2] ?? '', headers, body: Buffer.from(rest.join('\n\n'), 'utf8') };
};
/** The part of a canonical request before the payload's hash, and that hash. */
const split = (canonical: string): readonly [head: string, hash: string] => {
  const at = canonical.lastIndexOf('\n') + 1;
  return [canonical.slice(0, at), canonical.slice(at)];
};
const amzDate = (timestamp: string): string => timestamp.replaceAll(/[-:]/g, '');
const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');
const hmac = (key: Buffer | string, data: string): Buffer => createHmac('sha256', key).update(data).digest();

describe.runIf(folder !== null)('the signing suite', () => {
  test('has its 76 signings', () => {
    expect(signings).toHaveLength(76);
  });

  test.each(signings.map((signing) => [signing.name, signing.form, signing] as const))(
    '%s, %s: the signature is the published one, and no other',
    (_name, _form, { context, request, canonical, stringToSign, signature }) => {
      const [head, hash] = split(canonical);
      const { body } = parse(request);
      expect(hash).toBe(sha256(body));
      const date = amzDate(context.timestamp);
      const scope = `AWS4-HMAC-SHA256\n${date}\n${date.slice(0, 8)}/${context.region}/${context.service}/aws4_request\n`;
      expect(stringToSign).toBe(`${scope}${sha256(canonical)}`);
      const secret = secretKey(context.credentials.secret_access_key);
      const key = core.sigv4SigningKey(secret, date.slice(0, 8), context.region, context.service);
      const verify = (given: string, of = head): boolean => core.sigv4Verify(key, of, body, scope, given, '');
      expect(verify(signature)).toBe(true);
      for (const at of [0, 31, 63])
        expect(verify(`${signature.slice(0, at)}${signature[at] === '0' ? '1' : '0'}${signature.slice(at + 1)}`)).toBe(
          false,
        );
      expect(verify(signature, head.replace('host:', 'hosT:'))).toBe(false);
    },
  );
});

describe.runIf(folder !== null)("the suite's requests at the proxy", () => {
  const sigv4 = createSigV4(core, createSigningKeys(core));
  const known = (context: Context) => [
    {
      id: 'suite',
      accessKeyId: context.credentials.access_key_id,
      secret: secretKey(context.credentials.secret_access_key),
    },
  ];

  test.each(signings.map((signing) => [signing.name, signing.form, signing] as const))(
    '%s, %s: refused as it is',
    (name, form, { context }) => {
      const { method, target, headers, body } = parse(read(name, `${form}-signed-request.txt`));
      const answer = sigv4.verify(
        { method, target, rawHeaders: headers.flat(), body },
        known(context),
        Date.parse(context.timestamp),
      );
      expect(answer.ok).toBe(false);
    },
  );

  // The suite's canonical request, signed for the proxy's service: the verifier must derive the
  // same one from the raw request.
  test.each(signings.filter(({ form }) => form === 'header').map((signing) => [signing.name, signing] as const))(
    '%s: signed for the proxy, taken when path and query are those that were sent',
    (_name, { context, request, canonical }) => {
      const { method, target, headers, body } = parse(request);
      const [, path = '', query = ''] = canonical.split('\n');
      const [head] = split(canonical);
      const lines = head.split('\n');
      const list = lines.at(-2) ?? '';
      const present = new Set(headers.map(([name]) => name.toLowerCase()));
      // What the signer added: the date, sometimes a session token or the payload's hash.
      const added = lines
        .slice(3, lines.indexOf('', 3))
        .map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)])
        .filter(([name]) => !present.has(name));
      const date = amzDate(context.timestamp);
      const scope = `${date.slice(0, 8)}/${context.region}/kms-xks-proxy/aws4_request`;
      const key = [context.region, 'kms-xks-proxy', 'aws4_request'].reduce(
        hmac,
        hmac(`AWS4${context.credentials.secret_access_key}`, date.slice(0, 8)),
      );
      const signature = hmac(key, `AWS4-HMAC-SHA256\n${date}\n${scope}\n${sha256(canonical)}`).toString('hex');
      const authorization = `AWS4-HMAC-SHA256 Credential=${context.credentials.access_key_id}/${scope}, SignedHeaders=${list}, Signature=${signature}`;
      const rawHeaders = [...headers, ...added, ['Authorization', authorization]].flat();
      const answer = sigv4.verify({ method, target, rawHeaders, body }, known(context), Date.parse(context.timestamp));
      expect(answer.ok, answer.ok ? '' : answer.reason).toBe(path === target && query === '');
    },
  );
});
