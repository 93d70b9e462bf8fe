// HTTP/2 frames (RFC 9113) as no client would send them, over TLS, and what a server does about
// them. Header blocks are written as literals without indexing (RFC 7541, 6.2.2); of those that
// come back only the bodies are read.
import { connectRaw, type TlsPlace } from './raw-tls.ts';

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
export const flags = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;
const errorCodes = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
] as const;

export const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

export const frame = (type: number, flag: number, stream: number, payload: Buffer | string = ''): Buffer => {
  const body = Buffer.from(payload as string);
  const head = Buffer.alloc(9);
  head.writeUIntBE(body.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flag, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, body]);
};

/** A string literal of HPACK, Latin-1, not Huffman-coded. */
const literal = (text: string): Buffer => {
  const bytes = Buffer.from(text, 'latin1');
  const length: number[] = [];
  let rest = bytes.length;
  if (rest < 0x7f) length.push(rest);
  else {
    length.push(0x7f);
    for (rest -= 0x7f; rest >= 0x80; rest >>= 7) length.push((rest & 0x7f) | 0x80);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
};
export type HeaderList = readonly (readonly [name: string, value: string])[];
export const headerBlock = (list: HeaderList): Buffer =>
  Buffer.concat(list.map(([name, value]) => Buffer.concat([Buffer.from([0]), literal(name), literal(value)])));

export const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
export const setting = (id: number, value: number): Buffer => {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id);
  bytes.writeUInt32BE(value, 2);
  return bytes;
};

const lastStream = 2_000_001;
const lastAnswer = '{"status":"healthy"}';
/** With it the window is opened, should a test have shut it. */
const lastQuestion = (): Buffer =>
  Buffer.concat([
    frame(frameTypes.settings, 0, 0, setting(4, 65_535)),
    frame(
      frameTypes.headers,
      flags.endHeaders | flags.endStream,
      lastStream,
      headerBlock([
        [':method', 'GET'],
        [':scheme', 'https'],
        [':authority', 'still-there'],
        [':path', '/health'],
      ]),
    ),
  ]);

export interface Http2Conversation {
  /**
   * The outcome of streams, in turn: `1: BODY`, `1: RST CODE`. Without GOAWAY, which may be lost
   * when the connection closes.
   */
  readonly events: readonly string[];
  readonly closed: boolean;
}

export interface ConverseHttp2Options {
  /**
   * Sends a final request after so many events, which shows whether the connection is still open.
   */
  readonly staysAfter?: number;
  /** Preface and SETTINGS do not go before the pieces. */
  readonly bare?: boolean;
}

/** Sends the pieces one after the other. Without `staysAfter` the server is expected to close. */
export const converseHttp2 = async (
  server: TlsPlace,
  pieces: readonly Buffer[],
  { staysAfter, bare = false }: ConverseHttp2Options,
): Promise<Http2Conversation> => {
  const socket = await connectRaw(server, 'h2');
  const events: string[] = [];
  const bodies = new Map<number, string>();
  let bytes: Buffer = Buffer.alloc(0);
  let sent = false;
  let asked = false;
  const askAtLast = (): void => {
    if (!sent || asked || staysAfter === undefined || events.length < staysAfter) return;
    asked = true;
    socket.write(lastQuestion());
  };
  const over = new Promise<boolean>((resolve) => {
    socket.on('data', (part: Buffer) => {
      bytes = Buffer.concat([bytes, part]);
      while (bytes.length >= 9) {
        const length = bytes.readUIntBE(0, 3);
        if (bytes.length < 9 + length) return;
        const type = bytes.readUInt8(3);
        const flag = bytes.readUInt8(4);
        const stream = bytes.readUInt32BE(5);
        const payload = bytes.subarray(9, 9 + length);
        bytes = bytes.subarray(9 + length);
        const code = (at: number): string => errorCodes[payload.readUInt32BE(at)] ?? 'UNKNOWN';
        // Answers a PING, as every peer must (RFC 9113, 6.7): the server asks whether a silent peer
        // is still there.
        if (type === frameTypes.ping && (flag & flags.ack) === 0)
          socket.write(frame(frameTypes.ping, flags.ack, 0, payload));
        if (type === frameTypes.reset) events.push(`${stream}: RST ${code(0)}`);
        else if (type === frameTypes.data || type === frameTypes.headers) {
          if (type === frameTypes.data) bodies.set(stream, (bodies.get(stream) ?? '') + payload.toString('utf8'));
          if ((flag & flags.endStream) === 0) continue;
          const body = bodies.get(stream) ?? '';
          if (asked && stream === lastStream && body === lastAnswer) {
            resolve(false);
            return;
          }
          events.push(`${stream}: ${body}`);
        }
        askAtLast();
      }
    });
    socket.on('close', () => resolve(true));
  });
  const opening = bare ? [] : [Buffer.from(preface), frame(frameTypes.settings, 0, 0)];
  for (const piece of [...opening, ...pieces]) {
    if (socket.destroyed) break;
    await new Promise<void>((resolve) => {
      socket.write(piece, () => resolve());
    });
  }
  sent = true;
  askAtLast();
  try {
    return { events, closed: await over };
  } finally {
    socket.destroy();
  }
};
