// HTTP/1.1 at its edges, on raw TLS sockets against the real server, as one table: what is sent,
// what is answered (status and errorName), and whether the connection stays open. A request that
// was not understood to its end closes it, so that nothing after it counts as another request.
// After every row the server answers a signed call. RFC 9110, RFC 9112; limits of the External Key
// Store Proxy API. HTTP/2 is in xks-http2.test.ts.
import { createConnection } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { connectRaw, converse, type RawAnswer } from '../support/raw-tls.ts';
import { signXksRequest } from '../support/sign.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import { openXksCaller, wholeMetadata, type XksCaller } from '../support/xks-caller.ts';

let site: Site;
let caller: XksCaller;
let place: XksEndpoint;
beforeAll(async () => {
  site = await startSite();
  caller = openXksCaller(site.server);
  place = await createXksEndpoint(site, 'edge');
});
afterAll(async () => {
  const log = site?.server.log() ?? '';
  caller?.close();
  await site?.end();
  // Nothing of this is a fault of the service.
  expect(log.split('\n').filter((line) => /"level":(50|60|"error"|"fatal")/.test(line))).toEqual([]);
});
afterEach(async () => {
  const body = { requestMetadata: wholeMetadata(), plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' };
  expect(await caller.send(place.configuration, `/keys/${place.endpoint.keyId}/encrypt`, body)).toMatchObject({
    status: 200,
  });
});

type Pieces = string | Buffer | readonly (string | Buffer)[];
/** `P` stands for the endpoint's path, `K` for its key's path; requests are Latin-1. */
type Row = readonly [
  name: string,
  send: () => Pieces | Promise<Pieces>,
  answers: readonly string[],
  then: 'open' | 'closed',
];
interface Options {
  readonly bodiless?: boolean;
  readonly end?: boolean;
}

const say = ({ status, body }: RawAnswer): string => {
  if (status < 200 || status === 200 || body === '') return String(status);
  const errorName = /"errorName":"(\w+)"/.exec(body)?.[1];
  return errorName === undefined ? String(status) : `${status} ${errorName}`;
};
const fill = (piece: string | Buffer): Buffer =>
  typeof piece === 'string'
    ? Buffer.from(
        piece
          .replaceAll('/P/', `${place.configuration.XksProxyUriPath}/`)
          .replaceAll('/K/', `${place.configuration.XksProxyUriPath}/keys/${place.endpoint.keyId}/`),
        'latin1',
      )
    : piece;

const run = (rows: readonly Row[], options: Options = {}): void => {
  test.each(rows.map((row) => [row[0], row] as const))('%s', async (_name, [, send, answers, then]) => {
    const made = await send();
    const pieces = (typeof made === 'string' || Buffer.isBuffer(made) ? [made] : made).map(fill);
    const conversation = await converse(site.server, pieces, { stays: then === 'open', ...options });
    expect(conversation.answers.map(say)).toEqual(answers);
    expect(conversation.closed).toBe(then === 'closed');
    for (const { status, headers, body } of conversation.answers) {
      // Others than the proxy may say it otherwise.
      if (status < 400 || !body.includes('errorName')) continue;
      expect(headers.get('content-type')).toMatch(/^application\/(problem\+)?json/);
      expect(body).toMatch(/^[\x20-\x7e]{1,600}$/);
    }
    const [last] = conversation.answers.slice(-1);
    if (then === 'closed' && last !== undefined) expect(last.headers.get('connection')).toBe('close');
  });
};

const crlf = '\r\n';
const lines = (...texts: readonly string[]): string => texts.join(crlf);
/** A POST of `body` to health, with these header lines and a fitting Content-Length. */
const post = (headers: readonly string[] = [], body = '{}', target = '/P/health', version = 'HTTP/1.1'): string =>
  lines(`POST ${target} ${version}`, 'Host: edge', ...headers, `Content-Length: ${body.length}`, '', body);
/** Header lines and raw body, nothing added but Host. */
const raw = (headers: readonly string[], body: string): string =>
  lines('POST /P/health HTTP/1.1', 'Host: edge', ...headers, '', body);
const chunked = (body: string, headers: readonly string[] = []): string =>
  raw(['Transfer-Encoding: chunked', ...headers], body);
const whole = (text: string): string => `${text.length.toString(16)}${crlf}${text}${crlf}0${crlf}${crlf}`;
/** Bytes that must never count as a request: the answer would be 404. */
const smuggled = lines('POST /xks/smuggled HTTP/1.1', 'Host: edge', 'Content-Length: 0', '', '');

const bad = '400 ValidationException';
const noPath = '404 InvalidUriPathException';
const notAllowed = '405 InvalidUriPathException';
const tooLarge = '413 ValidationException';
const unauthenticated = '401 AuthenticationFailedException';

describe('the request line', () => {
  const line = (text: string): string => lines(text, 'Host: edge', 'Content-Length: 2', '', '{}');
  run([
    ['as it should be', () => post(), ['200'], 'open'],
    ['absolute-form, http', () => line('POST http://edge/P/health HTTP/1.1'), [bad], 'closed'],
    ['absolute-form, https', () => line('POST https://edge/P/health HTTP/1.1'), [bad], 'closed'],
    ['absolute-form of another host', () => line('POST https://other/P/health HTTP/1.1'), [bad], 'closed'],
    ['authority-form', () => line('POST edge:443 HTTP/1.1'), [bad], 'closed'],
    ['CONNECT', () => line('CONNECT edge:443 HTTP/1.1'), [bad], 'closed'],
    ['asterisk-form', () => line('OPTIONS * HTTP/1.1'), [bad], 'closed'],
    ['a target without its slash', () => line('POST xks/x HTTP/1.1'), [bad], 'closed'],
    ['no target', () => line('POST HTTP/1.1'), [bad], 'closed'],
    ['an empty target', () => line('POST  HTTP/1.1'), [bad], 'closed'],
    ['two blanks before the target, which are put up with', () => line('POST  /P/health HTTP/1.1'), ['200'], 'open'],
    ['two blanks behind the target, which are put up with', () => line('POST /P/health  HTTP/1.1'), ['200'], 'open'],
    ['a tab for a blank', () => line('POST\t/P/health HTTP/1.1'), [bad], 'closed'],
    ['a blank in the target', () => line('POST /P/he alth HTTP/1.1'), [bad], 'closed'],
    ['a blank before the method', () => line(' POST /P/health HTTP/1.1'), [bad], 'closed'],
    ['an empty line before it', () => crlf + post(), ['200'], 'open'],
    ['a method in small letters', () => line('post /P/health HTTP/1.1'), [bad], 'closed'],
    ['a method that does not exist', () => line('FROB /P/health HTTP/1.1'), [bad], 'closed'],
    ['no version', () => line('POST /P/health'), [bad], 'closed'],
    ['HTTP/0.9', () => line('POST /P/health HTTP/0.9'), [bad], 'closed'],
    ['HTTP/1.2', () => line('POST /P/health HTTP/1.2'), [bad], 'closed'],
    ['HTTP/1.10', () => line('POST /P/health HTTP/1.10'), [bad], 'closed'],
    ['HTTP/2.0', () => line('POST /P/health HTTP/2.0'), [bad], 'closed'],
    ['HTTP/3.0', () => line('POST /P/health HTTP/3.0'), [bad], 'closed'],
    ['a version in small letters', () => line('POST /P/health http/1.1'), [bad], 'closed'],
    ['another protocol, which the parser takes for HTTP/1.0', () => line('POST /P/health RTSP/1.0'), ['200'], 'closed'],
    ['something behind the version', () => line('POST /P/health HTTP/1.1 x'), [bad], 'closed'],
    ['a line feed alone at its end', () => post().replace(crlf, '\n'), [bad], 'closed'],
    ['a carriage return alone at its end', () => post().replace(crlf, '\r'), [bad], 'closed'],
    ['nonsense', () => 'nonsense\r\n\r\n', [bad], 'closed'],
    ['zeros', () => Buffer.alloc(100), [bad], 'closed'],
    ['a TLS record within TLS', () => Buffer.from('16030100050100000100', 'hex'), [bad], 'closed'],
    ["HTTP/2's preface", () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [bad], 'closed'],
  ]);
});

describe('HTTP/1.0', () => {
  run([
    ['is answered and closed', () => post([], '{}', '/P/health', 'HTTP/1.0'), ['200'], 'closed'],
    ['is kept when asked to', () => post(['Connection: keep-alive'], '{}', '/P/health', 'HTTP/1.0'), ['200'], 'open'],
    ['without Host', () => lines('POST /P/health HTTP/1.0', 'Content-Length: 2', '', '{}'), [bad], 'closed'],
    [
      'with a transfer coding',
      () => lines('POST /P/health HTTP/1.0', 'Host: edge', 'Transfer-Encoding: chunked', '', whole('{}')),
      [bad],
      'closed',
    ],
  ]);
});

describe('methods', () => {
  const empty = (method: string): string => lines(`${method} /P/health HTTP/1.1`, 'Host: edge', '', '');
  run(
    ['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'PROPFIND', 'QUERY', 'M-SEARCH'].map((method) => [
      method,
      () => empty(method),
      [notAllowed],
      'open',
    ]),
  );
  run([['HEAD', () => empty('HEAD'), ['405'], 'open']], { bodiless: true });
  run([
    [
      'GET with a body, which is not read',
      () =>
        raw([], '')
          .replace('POST', 'GET')
          .replace(crlf + crlf, `${crlf}Content-Length: 2${crlf}${crlf}{}`),
      [notAllowed],
      'closed',
    ],
  ]);
});

describe('paths', () => {
  const paths: readonly (readonly [string, string])[] = [
    ['a percent-encoded letter', '/P/%68ealth'],
    ['a percent-encoded slash', '/xks/x%2Fkms/xks/v1/health'],
    ['a percent-encoded dot segment', '/P/%2e%2e/health'],
    ['a percent sign alone', '/P/%'],
    ['a percent-encoded NUL', '/P/health%00'],
    ['a doubly encoded letter', '/P/%2568ealth'],
    ['an overlong encoding', '/P/%c1%a8ealth'],
    ['a dot segment', '/P/./health'],
    ['two dots', '/P/../v1/health'],
    ['two dots to health itself', '/xks/../health'],
    ['two dots to the console', '/xks/../api/status'],
    ['two slashes', '/P//health'],
    ['a slash at the end', '/P/health/'],
    ['a semicolon', '/P/health;a=b'],
    ['a semicolon at the end', '/P/health;'],
    ['a query', '/P/health?a=b'],
    ['an empty query', '/P/health?'],
    ['a presigned query', '/P/health?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=00'],
    ['a fragment', '/P/health#x'],
    ['a backslash', '/P/\\health'],
    ['capitals', '/P/HEALTH'],
    ['a tilde', '/P/~health'],
    ['an asterisk', '/P/*'],
    ['a plus', '/P/health+'],
    ['a colon', '/P/health:443'],
    ['an at sign', '/P/a@b'],
    ['braces', '/P/{health}'],
    ['quotes', '/P/"health"'],
    ['a long one', `/P/${'x'.repeat(6000)}`],
    ['the front alone', '/xks/'],
    ['nothing of it', '/xks/x'],
  ];
  run(paths.map(([name, path]) => [name, () => post([], '{}', path), [noPath], 'closed']));
  // Not the proxy's own: the console says that there is nothing.
  run(
    [
      ['the front without its slash', '/xks'],
      ['the front in capitals', '/XKS/x/kms/xks/v1/health'],
      ['the front percent-encoded', '/%78ks/x/kms/xks/v1/health'],
      ['a slash before the front', '//xks/x/kms/xks/v1/health'],
    ].map(([name = '', path = '']) => [name, () => post([], '', path), ['404'], 'open']),
  );
  run([
    ['a NUL', () => post([], '{}', '/P/he\0alth'), [bad], 'closed'],
    ['a control character', () => post([], '{}', '/P/he\x01alth'), [bad], 'closed'],
    ['DEL', () => post([], '{}', '/P/health\x7f'), [bad], 'closed'],
    ['a letter beyond ASCII', () => post([], '{}', '/P/h\xe9alth'), [bad], 'closed'],
    ['more than 8 KiB', () => post([], '{}', `/P/${'x'.repeat(9000)}`), ['431 ValidationException'], 'closed'],
  ]);
});

describe('header lines', () => {
  run([
    ['no Host', () => lines('POST /P/health HTTP/1.1', 'Content-Length: 2', '', '{}'), [bad], 'closed'],
    ['two Hosts', () => post(['Host: edge']), [bad], 'closed'],
    ['two Hosts in different letters', () => post(['hOST: other']), [bad], 'closed'],
    ['a blank before the colon', () => post(['X-A : b']), [bad], 'closed'],
    ['a blank before the colon of Content-Length', () => raw(['Content-Length : 2'], '{}'), [bad], 'closed'],
    [
      'a blank before a name',
      () => lines('POST /P/health HTTP/1.1', ' X-A: b', 'Host: edge', 'Content-Length: 2', '', '{}'),
      [bad],
      'closed',
    ],
    ['a folded line', () => post(['X-A: b', ' c']), [bad], 'closed'],
    ['a line folded with a tab', () => post(['X-A: b', '\tc']), [bad], 'closed'],
    ['a folded Transfer-Encoding', () => raw(['Transfer-Encoding:', ' chunked'], whole('{}')), [bad], 'closed'],
    ['no colon', () => post(['X-A']), [bad], 'closed'],
    ['no name', () => post([': b']), [bad], 'closed'],
    ['no value', () => post(['X-A:']), ['200'], 'open'],
    ['blanks around a value', () => post(['X-A: \t b \t ']), ['200'], 'open'],
    ['a blank in a name', () => post(['X A: b']), [bad], 'closed'],
    ['a NUL in a name', () => post(['X\0A: b']), [bad], 'closed'],
    ['a NUL in a value', () => post(['X-A: b\0']), [bad], 'closed'],
    ['a control character in a value', () => post(['X-A: b\x07']), [bad], 'closed'],
    ['a carriage return in a value', () => post(['X-A: b\rc']), [bad], 'closed'],
    ['a line feed alone at the end of a line', () => post(['X-A: b']).replace('b\r\n', 'b\n'), [bad], 'closed'],
    ['a line feed alone at the end of the headers', () => post().replace('\r\n\r\n', '\r\n\n'), [bad], 'closed'],
    ['a letter beyond ASCII in a value', () => post(['X-A: \xe9']), ['200'], 'open'],
    ['a letter beyond ASCII in a name', () => post(['X-\xe9: b']), [bad], 'closed'],
    ['a name with brackets', () => post(['X-(A): b']), [bad], 'closed'],
    ['the same name thrice', () => post(['X-A: b', 'X-A: c', 'x-a: d']), ['200'], 'open'],
    ['a hundred of them', () => post(Array.from({ length: 100 }, (_, at) => `X-${at}: b`)), ['200'], 'open'],
    ['7 KiB of them', () => post([`X-A: ${'b'.repeat(7000)}`]), ['200'], 'open'],
    ['more than 8 KiB in one', () => post([`X-A: ${'b'.repeat(9000)}`]), ['431 ValidationException'], 'closed'],
    ['more than 8 KiB in a name', () => post([`X-${'b'.repeat(9000)}: a`]), ['431 ValidationException'], 'closed'],
    [
      'more than 8 KiB in many',
      () => post(Array.from({ length: 400 }, (_, at) => `X-${at}: ${'b'.repeat(20)}`)),
      ['431 ValidationException'],
      'closed',
    ],
    [
      'headers without end',
      () => [post().slice(0, -12), ...Array.from({ length: 200 }, (_, at) => `X-${at}: ${'b'.repeat(200)}\r\n`)],
      ['431 ValidationException'],
      'closed',
    ],
    ['byte by byte', () => [...fill(post(['X-A: b']))].map((byte) => Buffer.from([byte])), ['200'], 'open'],
    ['Connection: close', () => post(['Connection: close']), ['200'], 'closed'],
    ['Connection names a header', () => post(['Connection: x-a, keep-alive', 'X-A: b']), ['200'], 'open'],
    ['an Authorization of another scheme', () => post(['Authorization: Bearer x']), [unauthenticated], 'open'],
    ['an empty Authorization', () => post(['Authorization:']), [unauthenticated], 'open'],
  ]);
});

describe('Content-Length', () => {
  const stated = (...values: readonly string[]): string =>
    raw(
      values.map((value) => `Content-Length:${value}`),
      '{}',
    );
  run([
    ['fits', () => stated(' 2'), ['200'], 'open'],
    ['has zeros before it', () => stated(' 0002'), ['200'], 'open'],
    ['has blanks behind it', () => stated(' 2 \t'), ['200'], 'open'],
    ['is negative', () => stated(' -2'), [bad], 'closed'],
    ['has a plus', () => stated(' +2'), [bad], 'closed'],
    ['is hexadecimal', () => stated(' 0x2'), [bad], 'closed'],
    ['has an exponent', () => stated(' 2e0'), [bad], 'closed'],
    ['has a fraction', () => stated(' 2.0'), [bad], 'closed'],
    ['is not a number', () => stated(' two'), [bad], 'closed'],
    ['is empty', () => stated(' '), [bad], 'closed'],
    ['has a blank within', () => stated(' 2 2'), [bad], 'closed'],
    ['is a list of the same', () => stated(' 2, 2'), [bad], 'closed'],
    ['is a list of different ones', () => stated(' 2, 40'), [bad], 'closed'],
    ['stands twice, the same', () => stated(' 2', ' 2'), [bad], 'closed'],
    ['stands twice, different', () => stated(' 2', ' 40') + smuggled, [bad], 'closed'],
    ['does not fit into 64 bits', () => stated(` ${'9'.repeat(30)}`), [bad], 'closed'],
    ['is 2^64', () => stated(' 18446744073709551616'), [bad], 'closed'],
    ['is enormous', () => stated(' 9007199254740993'), [tooLarge], 'closed'],
    ['is over 64 KiB, before the body comes', () => raw(['Content-Length: 65537'], ''), [tooLarge], 'closed'],
    ['is 64 KiB', () => post([], `{${' '.repeat(65_534)}}`), ['200'], 'open'],
    ['is 0', () => raw(['Content-Length: 0'], ''), [bad], 'open'],
    ['is absent', () => raw([], ''), [bad], 'open'],
    [
      'is less than what comes: the rest is not a request',
      () => raw(['Content-Length: 2'], '{}x'),
      ['200', bad],
      'closed',
    ],
    ['is 0 and a request follows: that is one', () => raw(['Content-Length: 0'], '') + smuggled, [bad, noPath], 'open'],
    [
      'is of a request that is not read: what follows is not a request',
      () => raw(['Content-Length: 65537'], '') + smuggled,
      [tooLarge],
      'closed',
    ],
    ['is stated to a path that does not exist', () => post([], '{}', '/xks/x') + smuggled, [noPath], 'closed'],
  ]);
});

describe('Transfer-Encoding', () => {
  const coded = (value: string, ...more: readonly string[]): string =>
    raw([`Transfer-Encoding:${value}`, ...more], whole('{}'));
  run([
    ['chunked', () => coded(' chunked'), ['200'], 'open'],
    ['chunked in capitals', () => coded(' CHUNKED'), ['200'], 'open'],
    ['chunked with Content-Length', () => coded(' chunked', 'Content-Length: 2'), [bad], 'closed'],
    [
      'Content-Length with chunked',
      () => raw(['Content-Length: 4', 'Transfer-Encoding: chunked'], `0${crlf}${crlf}${smuggled}`),
      [bad],
      'closed',
    ],
    [
      'chunked with Content-Length, the long way',
      () => raw(['Transfer-Encoding: chunked', 'Content-Length: 500'], `0${crlf}${crlf}${smuggled}`),
      [bad],
      'closed',
    ],
    ['chunked twice in a list', () => coded(' chunked, chunked'), [bad], 'closed'],
    ['chunked twice in two lines', () => coded(' chunked', 'Transfer-Encoding: chunked'), [bad], 'closed'],
    ['identity', () => coded(' identity'), [bad], 'closed'],
    ['gzip', () => coded(' gzip'), [bad], 'closed'],
    ['gzip, then chunked', () => coded(' gzip, chunked'), [bad], 'closed'],
    ['chunked, then gzip', () => coded(' chunked, gzip'), [bad], 'closed'],
    ['chunked and identity in two lines', () => coded(' chunked', 'Transfer-Encoding: identity'), [bad], 'closed'],
    ['chunked with a parameter', () => coded(' chunked;a=b'), [bad], 'closed'],
    ['chunked in quotes', () => coded(' "chunked"'), [bad], 'closed'],
    ['xchunked', () => coded(' xchunked'), [bad], 'closed'],
    ['chunkedx', () => coded(' chunkedx'), [bad], 'closed'],
    ['chunked and a comma', () => coded(' chunked,'), [bad], 'closed'],
    ['a comma and chunked', () => coded(' ,chunked'), [bad], 'closed'],
    ['nothing', () => coded(''), [bad], 'closed'],
    ['chunked behind a vertical tab', () => coded(' \x0bchunked'), [bad], 'closed'],
    ['chunked behind a NUL', () => coded(' \0chunked'), [bad], 'closed'],
    ['a blank before the colon', () => raw(['Transfer-Encoding : chunked'], whole('{}')), [bad], 'closed'],
    ['an underscore in its name is another header', () => post(['Transfer_Encoding: chunked']), ['200'], 'open'],
    ['on a GET', () => coded(' chunked').replace('POST', 'GET'), [notAllowed], 'closed'],
  ]);
});

describe('chunks', () => {
  const zero = `0${crlf}${crlf}`;
  run([
    ['one for each byte', () => chunked(`1${crlf}{${crlf}1${crlf}}${crlf}${zero}`), ['200'], 'open'],
    [
      'thousands of one byte',
      () => chunked(`1${crlf}{${crlf}${`1${crlf} ${crlf}`.repeat(3000)}1${crlf}}${crlf}${zero}`),
      ['200'],
      'open',
    ],
    [
      'each in a write of its own',
      () => [chunked(''), `1${crlf}`, '{', crlf, `1${crlf}`, '}', crlf, '0', crlf, crlf],
      ['200'],
      'open',
    ],
    ['none but the last', () => chunked(zero), [bad], 'open'],
    ['sizes with zeros before them', () => chunked(`0002${crlf}{}${crlf}000${crlf}${crlf}`), ['200'], 'open'],
    ['sizes in capitals', () => chunked(`A${crlf}{        }${crlf}${zero}`), ['200'], 'open'],
    ['an extension', () => chunked(`2;a=b${crlf}{}${crlf}${zero}`), ['200'], 'open'],
    ['an extension in quotes', () => chunked(`2;a="b;c"${crlf}{}${crlf}${zero}`), ['200'], 'open'],
    ['an extension that has a line feed in it', () => chunked(`2;a=b\nx${crlf}{}${crlf}${zero}`), [bad], 'closed'],
    ['an extension of more than 16 KiB', () => chunked(`2;${'x'.repeat(20_000)}`), [tooLarge], 'closed'],
    [
      'extensions without end',
      () => [chunked(''), ...Array.from({ length: 60 }, () => `1;${'x'.repeat(15_000)}${crlf} ${crlf}`)],
      [tooLarge],
      'closed',
    ],
    ['a negative size', () => chunked(`-2${crlf}{}${crlf}${zero}`), [bad], 'closed'],
    ['a size with 0x', () => chunked(`0x2${crlf}{}${crlf}${zero}`), [bad], 'closed'],
    ['a size with a plus', () => chunked(`+2${crlf}{}${crlf}${zero}`), [bad], 'closed'],
    ['a blank before a size', () => chunked(` 2${crlf}{}${crlf}${zero}`), [bad], 'closed'],
    ['a blank behind a size', () => chunked(`2 ${crlf}{}${crlf}${zero}`), [bad], 'closed'],
    ['no size', () => chunked(`${crlf}{}${crlf}${zero}`), [bad], 'closed'],
    ['a size that is not a number', () => chunked(`two${crlf}{}${crlf}${zero}`), [bad], 'closed'],
    ['a size beyond 64 bits', () => chunked(`1${'0'.repeat(17)}${crlf}{}`), [bad], 'closed'],
    ['a size of 2^64 - 1', () => chunked(`${'f'.repeat(16)}${crlf}${' '.repeat(70_000)}`), [tooLarge], 'closed'],
    ['more than the size says', () => chunked(`2${crlf}{}x${crlf}${zero}`), [bad], 'closed'],
    ['no line end behind a chunk', () => chunked(`2${crlf}{}${zero}`), [bad], 'closed'],
    ['a line feed alone behind a size', () => chunked(`2\n{}${crlf}${zero}`), [bad], 'closed'],
    ['a line feed alone behind a chunk', () => chunked(`2${crlf}{}\n${zero}`), [bad], 'closed'],
    ['a carriage return alone behind a size', () => chunked(`2\r{}${crlf}${zero}`), [bad], 'closed'],
    [
      '64 KiB together',
      () =>
        chunked(
          `8000${crlf}${' '.repeat(0x8000)}${crlf}7ffe${crlf}${' '.repeat(0x7ffe)}${crlf}2${crlf}{}${crlf}${zero}`,
        ),
      ['200'],
      'open',
    ],
    [
      'a byte more than 64 KiB together',
      () =>
        chunked(
          `8000${crlf}${' '.repeat(0x8000)}${crlf}7fff${crlf}${' '.repeat(0x7fff)}${crlf}2${crlf}{}${crlf}${zero}`,
        ),
      [tooLarge],
      'closed',
    ],
    [
      'bodies without end',
      () => [chunked(''), ...Array.from({ length: 40 }, () => `1000${crlf}${' '.repeat(0x1000)}${crlf}`)],
      [tooLarge],
      'closed',
    ],
    ['a trailer', () => chunked(`2${crlf}{}${crlf}0${crlf}X-A: b${crlf}${crlf}`), ['200'], 'open'],
    [
      'a trailer that names another length',
      () => chunked(`2${crlf}{}${crlf}0${crlf}Content-Length: 500${crlf}${crlf}`),
      [bad],
      'closed',
    ],
    [
      'a trailer that names another host',
      () => chunked(`2${crlf}{}${crlf}0${crlf}Host: other${crlf}${crlf}`),
      ['200'],
      'open',
    ],
    ['a trailer that signs', () => chunked(`2${crlf}{}${crlf}0${crlf}Authorization: x${crlf}${crlf}`), ['200'], 'open'],
    ['a trailer without a colon', () => chunked(`2${crlf}{}${crlf}0${crlf}X-A${crlf}${crlf}`), [bad], 'closed'],
    [
      'trailers of more than 8 KiB',
      () => chunked(`2${crlf}{}${crlf}0${crlf}X-A: ${'b'.repeat(9000)}${crlf}${crlf}`),
      ['431 ValidationException'],
      'closed',
    ],
    ['a request behind the last', () => chunked(`2${crlf}{}${crlf}${zero}`) + smuggled, ['200', noPath], 'open'],
  ]);
});

describe('several requests at once', () => {
  run([
    ['are answered in turn', () => post() + smuggled + post(), ['200', noPath, '200'], 'open'],
    ['a hundred of them', () => post().repeat(100), Array.from({ length: 100 }, () => '200'), 'open'],
    ['the first that is wrong is the last', () => post() + post(['Host: edge']) + post(), ['200', bad], 'closed'],
    ['the first that cannot be read is the last', () => `${post()}nonsense\r\n\r\n${post()}`, ['200', bad], 'closed'],
    [
      'the first that closes is the last',
      () => post() + post(['Connection: close']) + post(),
      ['200', '200'],
      'closed',
    ],
    ['a body that looks like a request is a body', () => post([], smuggled) + post(), [bad, '200'], 'open'],
    [
      'an answer of the console among those of the proxy',
      () => `${post()}GET /api/status HTTP/1.1${crlf}Host: edge${crlf}${crlf}${post()}`,
      ['200', '401', '200'],
      'open',
    ],
  ]);
});

describe('Expect and Upgrade', () => {
  run([
    [
      '100-continue is told to continue',
      () => [raw(['Expect: 100-continue', 'Content-Length: 2'], ''), '{}'],
      ['100', '200'],
      'open',
    ],
    [
      '100-continue in capitals',
      () => [raw(['Expect: 100-Continue', 'Content-Length: 2'], ''), '{}'],
      ['100', '200'],
      'open',
    ],
    [
      '100-continue of what is too large is told so at once',
      () => raw(['Expect: 100-continue', 'Content-Length: 65537'], ''),
      [tooLarge],
      'closed',
    ],
    [
      '100-continue to a path that does not exist is told so at once',
      () => raw(['Expect: 100-continue', 'Content-Length: 2'], '').replace('/P/health', '/xks/x'),
      [noPath],
      'closed',
    ],
    [
      '100-continue with two Hosts is refused at once',
      () => raw(['Host: edge', 'Expect: 100-continue', 'Content-Length: 2'], ''),
      [bad],
      'closed',
    ],
    [
      'another expectation is not met',
      () => raw(['Expect: more', 'Content-Length: 2'], ''),
      ['417 ValidationException'],
      'closed',
    ],
    [
      'another expectation beside 100-continue',
      () => raw(['Expect: 100-continue, more', 'Content-Length: 2'], ''),
      ['417 ValidationException'],
      'closed',
    ],
    [
      'an offer of WebSocket is not taken up',
      () =>
        post([
          'Connection: Upgrade',
          'Upgrade: websocket',
          'Sec-WebSocket-Version: 13',
          'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
        ]),
      ['200'],
      'open',
    ],
    [
      'an offer of h2c is not taken up',
      () => post(['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA']),
      ['200'],
      'open',
    ],
    [
      'an offer of TLS is not taken up',
      () => post(['Connection: Upgrade', 'Upgrade: TLS/1.2, HTTP/1.1']),
      ['200'],
      'open',
    ],
  ]);
});

describe('signed headers', () => {
  const signed = async (body = '{}', change: (headers: [string, string][]) => [string, string][] = (all) => all) => {
    const { AccessKeyId, RawSecretAccessKey } = place.configuration.XksProxyAuthenticationCredential;
    const headers = await signXksRequest({
      host: 'edge',
      path: `${place.configuration.XksProxyUriPath}/health`,
      body,
      accessKeyId: AccessKeyId,
      secretAccessKey: RawSecretAccessKey,
    });
    const sent = change(Object.entries(headers)).map(([name, value]) => `${name}: ${value}`);
    return lines('POST /P/health HTTP/1.1', ...sent, `Content-Length: ${body.length}`, '', body);
  };
  const repeated =
    (wanted: string, value?: string) =>
    (all: [string, string][]): [string, string][] => [
      ...all,
      ...all
        .filter(([name]) => name.toLowerCase() === wanted)
        .map(([name, own]): [string, string] => [name, value ?? own]),
    ];
  const changed =
    (wanted: string, to: (value: string) => string) =>
    (all: [string, string][]): [string, string][] =>
      all.map(([name, value]) => [name, name.toLowerCase() === wanted ? to(value) : value]);
  run([
    ['as they should be', () => signed(), ['200'], 'open'],
    ['Authorization twice, the same', () => signed('{}', repeated('authorization')), [unauthenticated], 'open'],
    [
      'Authorization twice, the second wrong',
      () => signed('{}', repeated('authorization', 'x')),
      [unauthenticated],
      'open',
    ],
    ['X-Amz-Date twice', () => signed('{}', repeated('x-amz-date')), [unauthenticated], 'open'],
    ['Content-Type twice', () => signed('{}', repeated('content-type')), [unauthenticated], 'open'],
    ['Host twice', () => signed('{}', repeated('host')), [bad], 'closed'],
    [
      'another Host',
      () =>
        signed(
          '{}',
          changed('host', () => 'edges'),
        ),
      [unauthenticated],
      'open',
    ],
    [
      'a Host in capitals',
      () =>
        signed(
          '{}',
          changed('host', (value) => value.toUpperCase()),
        ),
      [unauthenticated],
      'open',
    ],
    [
      'blanks around a value',
      () =>
        signed(
          '{}',
          changed('content-type', (value) => `   ${value}\t`),
        ),
      ['200'],
      'open',
    ],
    [
      'an unsigned header that a balancer adds',
      () => signed('{}', (all) => [['X-Forwarded-For', '10.0.0.1'], ...all, ['Via', '1.1 x']]),
      ['200'],
      'open',
    ],
    [
      'a payload hash of UNSIGNED-PAYLOAD',
      () => signed('{}', (all) => [...all, ['X-Amz-Content-Sha256', 'UNSIGNED-PAYLOAD']]),
      [unauthenticated],
      'open',
    ],
    [
      'the algorithm of two curves',
      () =>
        signed(
          '{}',
          changed('authorization', (value) => value.replace('AWS4-HMAC-SHA256', 'AWS4-ECDSA-P256-SHA256')),
        ),
      [unauthenticated],
      'open',
    ],
    [
      'another terminator',
      () =>
        signed(
          '{}',
          changed('authorization', (value) => value.replace('aws4_request', 'aws4_reply')),
        ),
      [unauthenticated],
      'open',
    ],
  ]);
});

describe('connections that end early', () => {
  run(
    [
      ['before a byte', () => [], [], 'closed'],
      ['within the request line', () => 'POST /P/he', [bad], 'closed'],
      ['within the headers', () => post().slice(0, -12), [bad], 'closed'],
      ['within the body', () => raw(['Content-Length: 20'], '{'), [bad], 'closed'],
      ['within a chunk', () => chunked(`20${crlf}{`), [bad], 'closed'],
      ['before the last chunk', () => chunked(`2${crlf}{}${crlf}`), [bad], 'closed'],
    ],
    { end: true },
  );
});

describe('answers reach those who are still sending', () => {
  // A connection that is closed with bytes unread is reset, and the answer is lost.
  const flood = (size: number): Buffer => Buffer.alloc(size, 0x20);
  run([
    [
      'a body that is stated too large',
      () => [raw(['Content-Length: 4000000'], ''), flood(4_000_000)],
      [tooLarge],
      'closed',
    ],
    ['a body that turns out too large', () => [chunked(`3d0900${crlf}`), flood(4_000_000)], [tooLarge], 'closed'],
    [
      'headers that turn out too large',
      () => [post().slice(0, -12), 'X-A: ', Buffer.alloc(1_000_000, 'b')],
      ['431 ValidationException'],
      'closed',
    ],
    ['what is not a request', () => ['nonsense\r\n\r\n', flood(1_000_000)], [bad], 'closed'],
    [
      'a body to a path that does not exist',
      () => [raw(['Content-Length: 60000'], '').replace('/P/', '/xks/x/'), flood(60_000)],
      [noPath],
      'closed',
    ],
    [
      'requests behind the last: they are not carried out',
      () => `${post([], '{}', '/xks/x')}${post().repeat(1000)}`,
      [noPath],
      'closed',
    ],
  ]);
  test('who continues to send is cut off after a second', async () => {
    const socket = await connectRaw(site.server, 'http/1.1');
    socket.resume().write('nonsense\r\n\r\n');
    const more = setInterval(() => socket.write(flood(1000)), 20);
    // The server's end does not end ours.
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve());
    });
    clearInterval(more);
  });
});

describe('what is slow', () => {
  test.concurrent('headers that take more than 5 s are refused', async () => {
    const { answers, closed } = await converse(site.server, [fill(post().slice(0, -12))], { stays: false });
    expect([answers.map(say), closed]).toEqual([['408 ValidationException'], true]);
  });
  test.concurrent('a body that takes more than 10 s is refused', async () => {
    const { answers, closed } = await converse(site.server, [fill(raw(['Content-Length: 20'], '{'))], { stays: false });
    expect([answers.map(say), closed]).toEqual([['408 ValidationException'], true]);
  });
  test.concurrent('chunks that take more than 10 s are refused', async () => {
    const { answers, closed } = await converse(site.server, [fill(chunked(`2${crlf}{`))], { stays: false });
    expect([answers.map(say), closed]).toEqual([['408 ValidationException'], true]);
  });
  test.concurrent('a second request that takes more than 5 s is refused, the first was answered', async () => {
    const { answers, closed } = await converse(site.server, [fill(post()), 'POST /xks'], { stays: false });
    expect([answers.map(say), closed]).toEqual([['200', '408 ValidationException'], true]);
  });
  test.concurrent('a handshake that takes more than 5 s is cut off', async () => {
    const socket = createConnection(site.server.port, '127.0.0.1');
    socket.on('error', () => undefined).write(Buffer.from('1603010100', 'hex'));
    await new Promise<void>((resolve) => {
      socket.resume().once('close', () => resolve());
    });
  });
  test.concurrent('a connection on which nothing is ever sent is cut off', async () => {
    const socket = await connectRaw(site.server, 'http/1.1');
    await new Promise<void>((resolve) => {
      socket.resume().once('close', () => resolve());
    });
  });
});

test('HTTP without TLS is cut off without an answer', async () => {
  const socket = createConnection(site.server.port, '127.0.0.1');
  const parts: Buffer[] = [];
  socket.on('error', () => undefined).on('data', (part: Buffer) => parts.push(part));
  socket.write('GET /health HTTP/1.1\r\nHost: edge\r\n\r\n');
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  expect(Buffer.concat(parts).toString('latin1')).not.toContain('HTTP/1.1');
});
