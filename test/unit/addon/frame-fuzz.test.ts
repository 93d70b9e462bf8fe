// Damaged frames against a live frame server, from a fixed seed. Beside "no crash, no hang" there
// is an exact check: a second reader of the same bytes, twenty lines long, says how many frames the
// server must have handed on and how many connections it must have refused. What frames mean is not
// the subject here.
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { ACTION, action, FrameWorker, frame, header } from '../../support/frame-client.ts';
import { sizeOf } from '../../support/tiers.ts';

const frames = sizeOf('frame fuzz');
const maxFrame = 4096;
const longestConversation = 40;
const parallel = 16;

/** Mulberry32: small, and the same everywhere. */
const random = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
};

/** The expected result for one connection's bytes. */
class Reading {
  frames = 0;
  rejected = false;
  over = false;
  #greeted = false;
  #rest: Buffer = Buffer.alloc(0);

  feed(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    if (!this.#greeted && this.#rest.length > 0) {
      this.#greeted = true;
      this.rejected = this.over = (this.#rest[0] ?? 0) >= 0xfe;
      this.#rest = this.#rest.subarray(1);
    }
    while (!this.over && this.#rest.length >= 12) {
      const [code, options, body] = [0, 4, 8].map((at) => this.#rest.readUInt32BE(at)) as [number, number, number];
      this.rejected = this.over = code === 0 || options + body > maxFrame;
      if (this.over || this.#rest.length < 12 + options + body) return;
      this.frames += 1;
      const what = body === 0 ? ACTION.echo : this.#rest[12 + options];
      const ends: readonly (number | undefined)[] = [
        ACTION.close,
        ACTION.throw,
        ACTION.nothing,
        ACTION.tooLong,
        ACTION.turnAgain,
      ];
      this.over = ends.includes(what);
      this.#rest = this.#rest.subarray(12 + options + body);
    }
  }
}

const lengths = [
  0,
  1,
  11,
  12,
  13,
  maxFrame - 1,
  maxFrame,
  maxFrame + 1,
  0x7fffffff,
  0x80000000,
  0xfffffff4,
  0xffffffff,
];

const damagedFrame = (pick: (below: number) => number): Buffer => {
  const bytes = (count: number): Buffer => Buffer.from(Array.from({ length: count }, () => pick(256)));
  const body = Buffer.concat([
    Buffer.from([pick(4) === 0 ? pick(12) : ACTION.echo]),
    bytes(pick(10) === 0 ? pick(maxFrame) : pick(40)),
  ]);
  const good = frame(
    1 + pick(0xffff),
    body.subarray(0, maxFrame - 1),
    bytes(pick(3) === 0 ? pick(8) : 0).subarray(0, maxFrame - body.length),
  );
  const flip = (from: number, to: number): Buffer => {
    const at = from + pick(Math.max(1, to - from));
    good[at] = (good[at] ?? 0) ^ (1 << pick(8));
    return good;
  };
  switch (pick(16)) {
    case 0:
      return flip(0, 12);
    case 1:
      return header(1 + pick(9), lengths[pick(lengths.length)] ?? 0, lengths[pick(lengths.length)] ?? 0);
    case 2:
      return good.subarray(0, pick(good.length));
    case 3:
      return bytes(pick(64));
    case 4:
      return Buffer.concat([good, good]);
    case 5:
      return frame(pick(3), Buffer.alloc(0));
    case 6:
    case 7:
    case 8:
    case 9:
      return flip(12, good.length);
    default:
      return good;
  }
};

test(`${frames} damaged frames are each answered, held or refused, exactly as their bytes say`, async () => {
  const server = await FrameWorker.start({ maxFrame });
  const pick = random(20_480_117);
  let sent = 0;
  let wantedFrames = 0;
  let wantedRejections = 0;

  const converse = async (): Promise<void> => {
    while (sent < frames) {
      const reading = new Reading();
      const first = Buffer.from([pick(64) === 0 ? 0xf0 + pick(16) : 0]);
      reading.feed(first);
      const pieces: Buffer[] = [first];
      for (let i = 0; i < longestConversation && !reading.over; i++) {
        const piece = damagedFrame(pick);
        reading.feed(piece);
        pieces.push(piece);
        sent += 1;
      }
      wantedFrames += reading.frames;
      wantedRejections += reading.rejected ? 1 : 0;

      const socket = connect(server.path);
      socket.on('error', () => {});
      socket.resume();
      const closed = new Promise((resolve) => socket.on('close', resolve));
      // Half the conversations arrive at once, the others cut at places that are not frame
      // boundaries.
      const stream = Buffer.concat(pieces);
      const cut = pick(2) === 0 ? stream.length : pick(stream.length + 1);
      socket.write(stream.subarray(0, cut));
      if (cut < stream.length) await new Promise((resolve) => setImmediate(resolve));
      socket.end(stream.subarray(cut));
      await closed;
    }
  };
  await Promise.all(Array.from({ length: parallel }, converse));

  const client = await server.client();
  expect(await client.call(1, action(ACTION.echo, 'alive'))).toEqual(action(ACTION.echo, 'alive!'));
  const { kind: _, ...statistics } = await server.statistics();
  expect(statistics).toEqual({
    connections: 1,
    frames: wantedFrames + 1,
    laneMessages: 0,
    refusedFrames: 0,
    heldBytes: 0,
    replayedFrames: 0,
    rejected: wantedRejections,
  });
  // The seed must make the test useful: most frames reach the handler, and refusals occur.
  expect(wantedFrames).toBeGreaterThan(frames / 3);
  expect(wantedRejections).toBeGreaterThan(1000);
  client.end();
  await server.stop();
});
