// HTTP/2 at its edges, frame by frame on raw TLS sockets against the real server, as one table:
// what is sent, what happens to the streams and of the connection. RFC 9113, RFC 7541. After every
// row the server answers a signed call.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  converseHttp2,
  flags,
  frame,
  frameTypes,
  type HeaderList,
  headerBlock,
  preface,
  setting,
  uint32,
} from '../support/raw-http2.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import { openXksCaller, wholeMetadata, type XksCaller } from '../support/xks-caller.ts';

let site: Site;
let caller: XksCaller;
let place: XksEndpoint;
beforeAll(async () => {
  site = await startSite();
  caller = openXksCaller(site.server);
  place = await createXksEndpoint(site, 'frames');
});
afterAll(async () => {
  const log = site?.server.log() ?? '';
  caller?.close();
  await site?.end();
  expect(log.split('\n').filter((line) => /"level":(50|60|"error"|"fatal")/.test(line))).toEqual([]);
});
afterEach(async () => {
  const body = { requestMetadata: wholeMetadata(), plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' };
  expect(await caller.send(place.configuration, `/keys/${place.endpoint.keyId}/encrypt`, body)).toMatchObject({
    status: 200,
  });
});

type Row = readonly [
  name: string,
  send: () => Buffer | readonly Buffer[],
  events: readonly string[],
  /** `either`: a server may also close, without the events. */
  then: 'open' | 'closed' | 'either',
];

/** Bodies are shortened to `ok` or their errorName; a row may omit equal results. */
const say = (event: string): string =>
  event.replace(/\{.*"xksProxyFleetSize":1\}/, 'ok').replace(/\{.*"errorName":"(\w+)".*\}/, '$1');
const run = (rows: readonly Row[], options: { readonly bare?: boolean } = {}): void => {
  test.each(rows.map((row) => [row[0], row] as const))('%s', async (_name, [, send, events, then]) => {
    const made = send();
    const pieces = Buffer.isBuffer(made) ? [made] : made;
    const conversation = await converseHttp2(site.server, pieces, {
      ...(then === 'closed' ? {} : { staysAfter: events.length }),
      ...options,
    });
    const closes = then === 'either' ? conversation.closed : then === 'closed';
    expect(conversation.closed).toBe(closes);
    expect(conversation.events.map(say)).toEqual(then === 'either' && closes ? [] : events);
  });
};

const path = (): string => `${place.configuration.XksProxyUriPath}/health`;
/** The fields of a POST to health; `undefined` leaves one out. */
const fields = (changes: Readonly<Record<string, string | undefined>> = {}, more: HeaderList = []): HeaderList => {
  const all: Record<string, string | undefined> = {
    ':method': 'POST',
    ':scheme': 'https',
    ':authority': 'edge',
    ':path': path(),
    ...changes,
  };
  return [
    ...Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
    ...more,
  ];
};
const head = (list: HeaderList, stream = 1, flag: number = flags.endHeaders): Buffer =>
  frame(frameTypes.headers, flag, stream, headerBlock(list));
const data = (text: string | Buffer = '{}', stream = 1, flag: number = flags.endStream): Buffer =>
  frame(frameTypes.data, flag, stream, text);
const request = (list: HeaderList = fields(), stream = 1): Buffer =>
  Buffer.concat([head(list, stream), data('{}', stream)]);

const reset = ['1: RST PROTOCOL_ERROR'];
const broken: readonly string[] = [];

describe('requests', () => {
  run([
    ['as it should be', () => request(), ['1: ok'], 'open'],
    [
      'three at once',
      () => [request(fields(), 1), request(fields(), 3), request(fields(), 5)],
      ['1: ok', '3: ok', '5: ok'],
      'open',
    ],
    ['without :method', () => request(fields({ ':method': undefined })), reset, 'open'],
    ['without :scheme', () => request(fields({ ':scheme': undefined })), reset, 'open'],
    ['without :path', () => request(fields({ ':path': undefined })), reset, 'open'],
    ['without :authority', () => request(fields({ ':authority': undefined })), reset, 'open'],
    ['Host instead of :authority', () => request(fields({ ':authority': undefined, host: 'edge' })), ['1: ok'], 'open'],
    ['Host beside :authority', () => request(fields({ host: 'edge' })), ['1: ValidationException'], 'open'],
    ['two Hosts', () => request(fields({ ':authority': undefined, host: 'edge' }, [['host', 'edge']])), reset, 'open'],
    ['two of :path', () => request(fields({}, [[':path', '/']])), reset, 'open'],
    ['two of :method', () => request([[':method', 'POST'], ...fields()]), reset, 'open'],
    ['two of :authority', () => request([[':authority', 'other'], ...fields()]), reset, 'open'],
    ['a pseudo-header behind another header', () => request([['x-a', 'b'], ...fields()]), reset, 'open'],
    ['an unknown pseudo-header', () => request([[':x', 'b'], ...fields()]), reset, 'open'],
    ['the pseudo-header of answers', () => request([[':status', '200'], ...fields()]), reset, 'open'],
    [
      'CONNECT',
      () => request(fields({ ':method': 'CONNECT', ':path': undefined, ':scheme': undefined })),
      ['1: ValidationException'],
      'open',
    ],
    ['a method in small letters', () => request(fields({ ':method': 'post' })), ['1: InvalidUriPathException'], 'open'],
    [
      'GET',
      () => head(fields({ ':method': 'GET' }), 1, flags.endHeaders | flags.endStream),
      ['1: InvalidUriPathException'],
      'open',
    ],
    ['an empty path', () => request(fields({ ':path': '' })), reset, 'open'],
    ['an asterisk for a path', () => request(fields({ ':path': '*' })), reset, 'open'],
    ['a path without its slash', () => request(fields({ ':path': 'xks' })), reset, 'open'],
    ['an absolute path', () => request(fields({ ':path': `https://edge${path()}` })), reset, 'open'],
    ['a query', () => request(fields({ ':path': `${path()}?a=b` })), ['1: InvalidUriPathException'], 'open'],
    ['a fragment', () => request(fields({ ':path': `${path()}#a` })), ['1: InvalidUriPathException'], 'open'],
    [
      'two slashes',
      () => request(fields({ ':path': path().replace('/kms', '//kms') })),
      ['1: InvalidUriPathException'],
      'open',
    ],
    [
      'a percent-encoded letter',
      () => request(fields({ ':path': path().replace('health', '%68ealth') })),
      ['1: InvalidUriPathException'],
      'open',
    ],
    [
      'a dot segment',
      () => request(fields({ ':path': path().replace('/kms', '/./kms') })),
      ['1: InvalidUriPathException'],
      'open',
    ],
    ['the scheme http', () => request(fields({ ':scheme': 'http' })), ['1: ok'], 'open'],
  ]);
});

describe('header fields', () => {
  const more = (name: string, value = 'b'): Buffer => request(fields({}, [[name, value]]));
  run([
    ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'].map(
      (name): Row => [`${name}, which is of HTTP/1`, () => more(name, 'chunked'), reset, 'open'],
    ),
    ['te of anything but trailers', () => more('te', 'gzip'), reset, 'open'],
    ['te of trailers', () => more('te', 'trailers'), ['1: ok'], 'open'],
    ['a capital in a name', () => more('X-a'), reset, 'open'],
    ['a blank in a name, which leaves the field out', () => more('x a'), ['1: ok'], 'open'],
    ['a colon in a name, which leaves the field out', () => more('x:a'), ['1: ok'], 'open'],
    ['a NUL in a name, which leaves the field out', () => more('x\0a'), ['1: ok'], 'open'],
    ['a NUL in a value, which leaves the field out', () => more('x-a', 'b\0c'), ['1: ok'], 'open'],
    ['a line feed in a value, which leaves the field out', () => more('x-a', 'b\nc: d'), ['1: ok'], 'open'],
    ['a carriage return in a value, which leaves the field out', () => more('x-a', 'b\rc'), ['1: ok'], 'open'],
    ['no value', () => more('x-a', ''), ['1: ok'], 'open'],
    ['a letter beyond ASCII in a value', () => more('x-a', '\xe9'), ['1: ok'], 'open'],
    ['an expectation', () => more('expect', '100-continue'), ['1: ok'], 'open'],
    [
      'Authorization twice',
      () =>
        request(
          fields({}, [
            ['authorization', 'a'],
            ['authorization', 'b'],
          ]),
        ),
      ['1: AuthenticationFailedException'],
      'open',
    ],
    ['a Content-Length that is too long', () => more('content-length', '3'), reset, 'open'],
    ['a Content-Length that is too short', () => more('content-length', '1'), [], 'closed'],
    ['a Content-Length that is negative', () => more('content-length', '-2'), reset, 'open'],
    ['a Content-Length that is a list', () => more('content-length', '2, 2'), reset, 'open'],
    [
      'two Content-Lengths',
      () =>
        request(
          fields({}, [
            ['content-length', '2'],
            ['content-length', '2'],
          ]),
        ),
      reset,
      'open',
    ],
    [
      'a Content-Length over 64 KiB',
      () => head(fields({}, [['content-length', '65537']])),
      ['1: ValidationException', '1: RST NO_ERROR'],
      'open',
    ],
    ['7 KiB of them', () => more('x-a', 'b'.repeat(7000)), ['1: ok'], 'open'],
    ['more than 8 KiB', () => more('x-a', 'b'.repeat(9000)), ['1: ValidationException'], 'open'],
    [
      'more than a hundred',
      () =>
        request(
          fields(
            {},
            Array.from({ length: 120 }, (_, at) => [`x-${at}`, 'b'] as const),
          ),
        ),
      ['1: RST ENHANCE_YOUR_CALM'],
      'open',
    ],
    [
      'trailers',
      () => [head(fields()), data('{}', 1, 0), head([['x-a', 'b']], 1, flags.endHeaders | flags.endStream)],
      ['1: ok'],
      'open',
    ],
    [
      'trailers with a pseudo-header',
      () => [head(fields()), data('{}', 1, 0), head([[':path', '/']], 1, flags.endHeaders | flags.endStream)],
      reset,
      'open',
    ],
    [
      'in pieces',
      () => {
        const block = headerBlock(fields());
        return [
          frame(frameTypes.headers, 0, 1, block.subarray(0, 3)),
          frame(frameTypes.continuation, 0, 1, block.subarray(3, 10)),
          frame(frameTypes.continuation, flags.endHeaders, 1, block.subarray(10)),
          data(),
        ];
      },
      ['1: ok'],
      'open',
    ],
    [
      'an index that does not exist',
      () => frame(frameTypes.headers, flags.endHeaders, 1, Buffer.from([0xff, 0x7f])),
      [],
      'closed',
    ],
    ['index 0', () => frame(frameTypes.headers, flags.endHeaders, 1, Buffer.from([0x80])), [], 'closed'],
    [
      'a table larger than allowed',
      () => frame(frameTypes.headers, flags.endHeaders, 1, Buffer.from([0x3f, 0xe1, 0xff, 0x7f])),
      [],
      'closed',
    ],
    [
      'a string longer than its block',
      () => frame(frameTypes.headers, flags.endHeaders, 1, Buffer.from([0x00, 0x7f, 0x01, 0x61])),
      [],
      'closed',
    ],
  ]);
});

describe('frames', () => {
  run([
    ['of an unknown type are ignored', () => [frame(0xbe, 0xff, 0, 'x'), request()], ['1: ok'], 'open'],
    ['of 16 KiB and a byte', () => [head(fields()), data(Buffer.alloc(16_385, 0x20))], [], 'closed'],
    ['DATA before HEADERS', () => data(), broken, 'closed'],
    ['DATA of no stream', () => data('{}', 0), broken, 'closed'],
    [
      'DATA with more padding than itself',
      () => [head(fields()), data(Buffer.from([9, 0x7b, 0x7d]), 1, flags.padded)],
      broken,
      'closed',
    ],
    [
      'DATA with padding',
      () => [head(fields()), data(Buffer.from([2, 0x7b, 0x7d, 0, 0]), 1, flags.padded | flags.endStream)],
      ['1: ok'],
      'open',
    ],
    [
      // RFC 9113, 6.9.1: an error of the stream or of the connection; versions of Node differ.
      'DATA beyond the window',
      () => [head(fields()), ...Array.from({ length: 6 }, () => data(Buffer.alloc(16_384, 0x20), 1, 0))],
      ['1: ValidationException'],
      'either',
    ],
    ['HEADERS of no stream', () => head(fields(), 0), broken, 'closed'],
    ['HEADERS of a stream of ours', () => head(fields(), 2), broken, 'closed'],
    [
      'HEADERS of an older stream, which are dropped',
      () => [request(fields(), 5), request(fields(), 3)],
      ['5: ok'],
      'open',
    ],
    [
      'HEADERS that depend on themselves',
      () =>
        frame(
          frameTypes.headers,
          flags.endHeaders | flags.priority,
          1,
          Buffer.concat([uint32(1), Buffer.from([1]), headerBlock(fields())]),
        ),
      broken,
      'closed',
    ],
    [
      'CONTINUATION alone',
      () => frame(frameTypes.continuation, flags.endHeaders, 1, headerBlock(fields())),
      broken,
      'closed',
    ],
    [
      'another frame within HEADERS',
      () => [head(fields(), 1, 0), frame(frameTypes.ping, 0, 0, Buffer.alloc(8))],
      broken,
      'closed',
    ],
    [
      'CONTINUATION of another stream',
      () => [head(fields(), 1, 0), frame(frameTypes.continuation, flags.endHeaders, 3, headerBlock([['x-a', 'b']]))],
      broken,
      'closed',
    ],
    [
      'PUSH_PROMISE',
      () => frame(frameTypes.pushPromise, flags.endHeaders, 1, Buffer.concat([uint32(2), headerBlock(fields())])),
      broken,
      'closed',
    ],
    ['RST_STREAM of a stream that never was', () => frame(frameTypes.reset, 0, 1, uint32(8)), broken, 'closed'],
    [
      'RST_STREAM of a wrong size',
      () => [head(fields()), frame(frameTypes.reset, 0, 1, Buffer.alloc(3))],
      [],
      'closed',
    ],
    [
      'RST_STREAM within a request',
      () => [head(fields()), frame(frameTypes.reset, 0, 1, uint32(8)), request(fields(), 3)],
      ['3: ok'],
      'open',
    ],
    ['SETTINGS of a stream', () => frame(frameTypes.settings, 0, 1), broken, 'closed'],
    ['SETTINGS of a wrong size', () => frame(frameTypes.settings, 0, 0, Buffer.alloc(5)), [], 'closed'],
    ['unknown SETTINGS', () => [frame(frameTypes.settings, 0, 0, setting(0xfe, 7)), request()], ['1: ok'], 'open'],
    ['SETTINGS with a push of 2', () => frame(frameTypes.settings, 0, 0, setting(2, 2)), broken, 'closed'],
    ['SETTINGS with a window of 2^31', () => frame(frameTypes.settings, 0, 0, setting(4, 2 ** 31)), [], 'closed'],
    ['SETTINGS with frames of a byte', () => frame(frameTypes.settings, 0, 0, setting(5, 1)), broken, 'closed'],
    [
      'an acknowledgement that says something',
      () => frame(frameTypes.settings, flags.ack, 0, setting(5, 20_000)),
      [],
      'closed',
    ],
    ['PING of a stream', () => frame(frameTypes.ping, 0, 1, Buffer.alloc(8)), broken, 'closed'],
    ['PING of a wrong size', () => frame(frameTypes.ping, 0, 0, Buffer.alloc(7)), [], 'closed'],
    ['WINDOW_UPDATE of nothing', () => frame(frameTypes.windowUpdate, 0, 0, uint32(0)), broken, 'closed'],
    ['WINDOW_UPDATE beyond 2^31', () => frame(frameTypes.windowUpdate, 0, 0, uint32(2 ** 31 - 1)), [], 'closed'],
    [
      'WINDOW_UPDATE of a stream that never was',
      () => frame(frameTypes.windowUpdate, 0, 1, uint32(1)),
      broken,
      'closed',
    ],
  ]);
});

describe('the opening', () => {
  run(
    [
      ['a request of HTTP/1.1', () => Buffer.from('GET /health HTTP/1.1\r\nHost: edge\r\n\r\n'), broken, 'closed'],
      ['a wrong preface', () => Buffer.from(preface.replace('SM', 'MS')), broken, 'closed'],
      ['no SETTINGS behind the preface', () => [Buffer.from(preface), request()], broken, 'closed'],
      ['zeros', () => Buffer.alloc(100), broken, 'closed'],
    ],
    { bare: true },
  );
});

describe('floods', () => {
  /**
   * Any outcome for the connection: it ends or answers a final request, and the server continues.
   */
  const survives = async (pieces: readonly Buffer[]): Promise<void> => {
    await converseHttp2(site.server, pieces, { staysAfter: 0 });
  };
  const many = (count: number, make: (at: number) => Buffer): Buffer =>
    Buffer.concat(Array.from({ length: count }, (_, at) => make(at)));

  test('requests that are taken back at once', () =>
    survives([
      many(10_000, (at) =>
        Buffer.concat([head(fields(), 2 * at + 1), frame(frameTypes.reset, 0, 2 * at + 1, uint32(8))]),
      ),
    ]));
  test('requests that are whole and taken back', () =>
    survives([
      many(5_000, (at) =>
        Buffer.concat([request(fields(), 2 * at + 1), frame(frameTypes.reset, 0, 2 * at + 1, uint32(8))]),
      ),
    ]));
  test('PING', () => survives([many(50_000, () => frame(frameTypes.ping, 0, 0, Buffer.alloc(8)))]));
  test('SETTINGS', () => survives([many(50_000, () => frame(frameTypes.settings, 0, 0, setting(4, 65_535)))]));
  test('PRIORITY', () =>
    survives([
      many(50_000, (at) => frame(frameTypes.priority, 0, 2 * at + 3, Buffer.concat([uint32(0), Buffer.from([1])]))),
    ]));
  test('WINDOW_UPDATE', () => survives([many(50_000, () => frame(frameTypes.windowUpdate, 0, 0, uint32(1)))]));
  test('DATA of nothing', () => survives([head(fields()), many(50_000, () => data('', 1, 0))]));
  test('CONTINUATION of nothing', () =>
    survives([head(fields(), 1, 0), many(50_000, () => frame(frameTypes.continuation, 0, 1))]));
  test('CONTINUATION without end', () =>
    survives([
      head(fields(), 1, 0),
      many(1_000, () => frame(frameTypes.continuation, 0, 1, headerBlock([['x-a', 'b'.repeat(1000)]]))),
    ]));
  test('DATA behind the end', () => survives([request(), data(), many(1_000, () => data('x'.repeat(100), 1, 0))]));
  test('streams that are left open', () => survives([many(2_000, (at) => head(fields(), 2 * at + 1))]));
  test('a thousand requests, answered each', async () => {
    const events = Array.from({ length: 1_000 }, (_, at) => request(fields(), 2 * at + 1));
    const conversation = await converseHttp2(site.server, [Buffer.concat(events)], { staysAfter: events.length });
    expect(conversation.events.filter((event) => !/: (\{|RST REFUSED_STREAM)/.test(event))).toEqual([]);
    expect(conversation).toMatchObject({ closed: false });
  });
});

describe('what is slow', () => {
  test.concurrent('a request that takes more than 10 s is given up', async () => {
    const { events, closed } = await converseHttp2(site.server, [head(fields())], { staysAfter: 1 });
    expect([events, closed]).toEqual([['1: RST CANCEL'], false]);
  });
  test.concurrent('an answer that is not taken for 10 s is given up', async () => {
    const opening = [Buffer.from(preface), frame(frameTypes.settings, 0, 0, setting(4, 0))];
    const { events, closed } = await converseHttp2(site.server, [...opening, request()], {
      bare: true,
      staysAfter: 1,
    });
    expect([events, closed]).toEqual([['1: RST CANCEL'], false]);
  });
});
