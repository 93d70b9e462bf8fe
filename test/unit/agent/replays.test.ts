// Messages that the addon repeats on its own (replays.ts): they cannot be distinguished from those
// that JavaScript handles.
import { createCipheriv } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { core, type FrameServer, type Replay } from '../../../addon/core.ts';
import { signatures } from '../../../provider/agent/codec/dispatcher.ts';
import { ownVersion } from '../../../provider/agent/codec/wire.ts';
import { ReplayCache } from '../../../provider/agent/sessions/replays.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { type CallName, calls } from '../../../provider/schema/calls.ts';
import { CKF, CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { FrameClient, frame } from '../../support/frame-client.ts';
import fc from '../../support/property.ts';
import { sizeOf } from '../../support/tiers.ts';

// --- messages ------------------------------------------------------------------------------------

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const u64 = (value: number): Buffer => Buffer.concat([u32(Math.floor(value / 2 ** 32)), u32(value >>> 0)]);
const array = (bytes: Uint8Array): Buffer => Buffer.concat([u32(bytes.length), bytes]);
const present = (bytes: Uint8Array): Buffer => Buffer.concat([Buffer.of(1), array(bytes)]);
const message = (name: CallName, ...body: readonly Uint8Array[]): Buffer =>
  Buffer.concat([u32(calls[name].code), array(Buffer.from(signatures(calls[name]).request, 'latin1')), ...body]);

const form = { none: Buffer.of(0), flat: 1, number: 2, gcm: 4 } as const;
const flat = (bytes: Uint8Array): Buffer => Buffer.concat([Buffer.of(form.flat), array(bytes)]);
const mechanism = (type: number, parameter: Uint8Array): Buffer => Buffer.concat([u32(type), parameter]);
const gcm = (fill: number, aad = 0): Buffer =>
  mechanism(
    CKM.AES_GCM,
    Buffer.concat([Buffer.of(form.gcm), array(Buffer.alloc(12, fill)), u64(96), array(Buffer.alloc(aad, 1)), u64(128)]),
  );
const mechanisms = [
  mechanism(CKM.AES_ECB, form.none),
  mechanism(CKM.AES_CBC, flat(Buffer.alloc(16, 1))),
  mechanism(CKM.AES_CBC, flat(Buffer.alloc(16, 2))),
  mechanism(CKM.AES_CBC, flat(Buffer.alloc(15, 2))),
  mechanism(CKM.AES_CBC_PAD, flat(Buffer.alloc(16, 3))),
  mechanism(CKM.SHA256_HMAC, form.none),
  mechanism(CKM.SHA256_HMAC_GENERAL, Buffer.concat([Buffer.of(form.number), u64(10)])),
  // A null mechanism cancels.
  u32(0xffff_ffff),
  gcm(4),
  gcm(5, 3),
];

const flag = (type: number, value: boolean): Buffer =>
  Buffer.concat([u32(type), Buffer.of(1), u32(1), Buffer.of(value ? 1 : 0)]);
const number = (type: number, value: number): Buffer => Buffer.concat([u32(type), Buffer.of(1), u32(8), u64(value)]);
const bytes = (type: number, value: Uint8Array): Buffer =>
  Buffer.concat([u32(type), Buffer.of(1), u32(value.length), array(value)]);
const template = (...rows: readonly Buffer[]): Buffer => Buffer.concat([u32(rows.length), ...rows]);

const createKey = (session: number, type: number, fill: number, isPrivate: boolean): Buffer =>
  message(
    'C_CreateObject',
    u64(session),
    template(
      number(CKA.CLASS, CKO.SECRET_KEY),
      number(CKA.KEY_TYPE, type),
      flag(CKA.PRIVATE, isPrivate),
      flag(CKA.SIGN, true),
      flag(CKA.ENCRYPT, type === CKK.AES),
      flag(CKA.DECRYPT, type === CKK.AES),
      bytes(CKA.VALUE, Buffer.alloc(32, fill)),
    ),
  );

const sessions = [1, 2];
const firstKey = 2 ** 31;
/** Two of AES, one of them private, one for HMAC; one of the token; and none. */
const keys = [firstKey, firstKey + 1, firstKey + 2, 5, firstKey + 99];
/** How every sequence begins. */
const preparation = [
  message('C_Initialize', present(Buffer.alloc(0)), Buffer.of(0), present(Buffer.alloc(0))),
  ...sessions.map(() => message('C_OpenSession', u64(0), u64(CKF.SERIAL_SESSION | CKF.RW_SESSION))),
  message('C_Login', u64(1), u64(1), present(Buffer.from('pin'))),
  createKey(1, CKK.AES, 7, false),
  createKey(1, CKK.AES, 8, true),
  createKey(2, CKK.GENERIC_SECRET, 9, false),
];

const lengths = [0, 15, 16, 48];
const rooms = [0, 16, 64, 0xffff_ffff];
const session = fc.constantFrom(...sessions, 77);
const kind = fc.constantFrom('Encrypt' as const, 'Decrypt' as const, 'Sign' as const);
const data = fc.constantFrom(...lengths).map((length) => present(Buffer.alloc(length, 6)));
const room = fc.oneof({ weight: 3, arbitrary: fc.constant(64) }, { weight: 1, arbitrary: fc.constantFrom(...rooms) });

type Steps = readonly Buffer[];
/** An operation, its mechanism the first time and each time after that, and its key. */
type Usual = readonly [name: 'Encrypt' | 'Decrypt' | 'Sign', how: (i: number) => Buffer, key: number];

const one = (step: fc.Arbitrary<Buffer>): fc.Arbitrary<Steps> => step.map((each) => [each]);
const quietStep = (of: number): Buffer =>
  message('C_GetAttributeValue', u64(of), u64(firstKey), u32(1), u32(CKA.ENCRYPT), u32(1));
const quiet = session.map(quietStep);

/** Steps between which nothing waits for the service. */
const localSteps = (key: fc.Arbitrary<number>): fc.Arbitrary<Steps> => {
  const always = (how: Buffer) => () => how;
  const cipherKey = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(firstKey, firstKey + 1) },
    { weight: 1, arbitrary: key },
  );
  const usual: fc.Arbitrary<Usual> = fc.oneof(
    fc.tuple(
      fc.constantFrom('Encrypt' as const, 'Decrypt' as const),
      fc.constantFrom(...mechanisms.slice(0, 5)).map(always),
      cipherKey,
    ),
    // Few IVs, so that some repeat; and some with additional data, which are never replays.
    fc.tuple(
      fc.constant('Encrypt' as const),
      fc.tuple(fc.nat({ max: 60 }), fc.constantFrom(0, 0, 0, 2)).map(
        ([start, aad]) =>
          (i: number) =>
            gcm(start + i, aad),
      ),
      cipherKey,
    ),
    fc.tuple(
      fc.constant('Sign' as const),
      fc.constantFrom(...mechanisms.slice(5, 7)).map(always),
      fc.constant(firstKey + 2),
    ),
  );
  /** Once or twice, and the second time is one too many. */
  const usualInits = fc
    .tuple(usual, fc.constantFrom(...sessions), fc.integer({ min: 1, max: 2 }))
    .map(([[name, how, under], of, times]) =>
      Array.from({ length: times }, () => message(`C_${name}Init`, u64(of), how(0), u64(under))),
    );
  const init = fc
    .tuple(kind, session, fc.constantFrom(...mechanisms), key)
    .map(([name, of, how, under]) => message(`C_${name}Init`, u64(of), how, u64(under)));
  const whole = fc
    .tuple(kind, session, data, room)
    .map(([name, of, given, space]) => message(`C_${name}`, u64(of), given, u32(space)));
  /** What a database does: the same over and over, with as much room as it takes. */
  const repeat = ([name, how, under]: Usual, of: number, times: number): Buffer[] =>
    Array.from({ length: times }, (_, i) => [
      message(`C_${name}Init`, u64(of), how(i), u64(under)),
      message(`C_${name}`, u64(of), present(Buffer.alloc(16 * (i + 1), i)), u32(128)),
    ]).flat();
  const rounds = fc
    .tuple(usual, fc.constantFrom(...sessions), fc.integer({ min: 2, max: 5 }))
    .map(([what, of, times]) => repeat(what, of, times));
  /**
   * An operation in parts, as Java calls it: mostly one part; sometimes an incomplete block, or a
   * buffer that is too small.
   */
  const inParts = (
    name: 'Encrypt' | 'Decrypt',
    of: number,
    parts: readonly (readonly [number, number])[],
  ): Buffer[] => [
    ...parts.map(([length, space], i) =>
      message(`C_${name}Update`, u64(of), present(Buffer.alloc(length, i)), u32(space)),
    ),
    message(`C_${name}Final`, u64(of), u32(parts[0]?.[1] ?? 64)),
  ];
  const part = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom([16, 64] as const, [48, 64] as const, [16, 16] as const) },
    {
      weight: 1,
      arbitrary: fc.constantFrom([15, 64] as const, [48, 16] as const, [16, 0xffff_ffff] as const, [0, 64] as const),
    },
  );
  const partRounds = fc
    .tuple(
      fc.constantFrom('Encrypt' as const, 'Decrypt' as const),
      fc.constantFrom(...mechanisms.slice(0, 5)),
      cipherKey,
      fc.constantFrom(...sessions),
      fc.array(
        fc.oneof(
          { weight: 6, arbitrary: fc.tuple(part) },
          { weight: 1, arbitrary: fc.array(part, { maxLength: 3 }) },
          { weight: 1, arbitrary: fc.constant(null) },
        ),
        { minLength: 2, maxLength: 6 },
      ),
      fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: one(quiet) }),
    )
    .map(([name, how, under, of, all, between]) =>
      all.flatMap((parts) => {
        const first = message(`C_${name}Init`, u64(of), how, u64(under));
        if (parts === null) return [first, message(`C_${name}`, u64(of), present(Buffer.alloc(32)), u32(64))];
        const steps = inParts(name, of, parts);
        return [first, ...steps.slice(0, -1), ...between, ...steps.slice(-1)];
      }),
    );
  const update = fc
    .tuple(fc.constantFrom('C_EncryptUpdate' as const, 'C_DecryptUpdate' as const), session, data, room)
    .map(([name, of, given, space]) => message(name, u64(of), given, u32(space)));
  const end = fc
    .tuple(fc.constantFrom('C_EncryptFinal' as const, 'C_DecryptFinal' as const, 'C_SignFinal' as const), session)
    .map(([name, of]) => message(name, u64(of), u32(64)));
  const change = fc.oneof(
    fc
      .tuple(session, fc.constantFrom(...keys.slice(0, 3)), fc.boolean())
      .map(([of, under, may]) =>
        message('C_SetAttributeValue', u64(of), u64(under), template(flag(CKA.ENCRYPT, may), flag(CKA.SIGN, may))),
      ),
    fc
      .tuple(session, fc.constantFrom(...keys.slice(0, 3)))
      .map(([of, under]) => message('C_DestroyObject', u64(of), u64(under))),
    session.map((of) => createKey(of, CKK.AES, 7, false)),
    session.map((of) => message('C_CloseSession', u64(of))),
    session.map((of) => message('C_Logout', u64(of))),
    session.map((of) => message('C_Login', u64(of), u64(1), present(Buffer.from('pin')))),
    session.map((of) => message('C_SessionCancel', u64(of), u64(CKF.ENCRYPT | CKF.SIGN))),
    fc.constant(message('C_OpenSession', u64(0), u64(CKF.SERIAL_SESSION))),
  );
  const changed = fc
    .tuple(usual, fc.constantFrom(...sessions), change)
    .map(([what, of, between]) => [...repeat(what, of, 3), between, ...repeat(what, of, 2)]);
  return fc.oneof(
    { weight: 12, arbitrary: rounds },
    { weight: 8, arbitrary: partRounds },
    { weight: 4, arbitrary: usualInits },
    { weight: 2, arbitrary: one(init) },
    { weight: 4, arbitrary: one(whole) },
    { weight: 1, arbitrary: one(update) },
    { weight: 1, arbitrary: one(end) },
    { weight: 1, arbitrary: one(quiet) },
    { weight: 1, arbitrary: one(change) },
    { weight: 2, arbitrary: changed },
  );
};
const sequence = (key: fc.Arbitrary<number>): fc.Arbitrary<Steps> =>
  fc.array(localSteps(key), { minLength: 1, maxLength: 40 }).map((steps) => steps.flat());

// --- two agents ----------------------------------------------------------------------------------

interface Statistics {
  readonly frames: number;
  readonly replayedFrames: number;
}

class Agent {
  readonly path: string;
  readonly #worker: Worker;
  #id = 0;

  constructor(folder: string, withReplays: boolean) {
    this.path = join(folder, withReplays ? 'with' : 'without');
    const url = new URL('../../support/replay-worker.ts', import.meta.url);
    this.#worker = new Worker(url, { workerData: { path: this.path, withReplays } });
  }

  async start(): Promise<void> {
    const [{ listening }] = (await once(this.#worker, 'message')) as [{ listening: number }];
    this.#id = listening;
  }

  async stop(): Promise<Statistics> {
    const reported = once(this.#worker, 'message');
    core.stopFrameServer(this.#id);
    const [{ statistics }] = (await reported) as [{ statistics: Statistics }];
    await this.#worker.terminate();
    return statistics;
  }

  /** The answers to a sequence on a connection of its own; `atOnce`: written in one piece. */
  async answers(steps: Steps, atOnce: boolean): Promise<string[]> {
    const client = new FrameClient(this.path);
    await client.greet(ownVersion);
    const answers: string[] = [];
    const frames = [...preparation, ...steps].map((body, i) => frame(i + 1, body));
    // C_Initialize waits: nothing may overtake it.
    const pieces = atOnce ? [frames.slice(0, 1), frames.slice(1)] : frames.map((each) => [each]);
    for (const piece of pieces) {
      client.write(Buffer.concat(piece));
      for (const _ of piece) {
        const { callCode, body } = await client.readFrame();
        answers.push(`${callCode} ${body.toString('hex')}`);
      }
    }
    client.end();
    return answers;
  }
}

describe('an agent with replays and one without', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-replays-'));
  const plain = new Agent(folder, false);
  const replay = new Agent(folder, true);
  let sent = 0;

  beforeAll(async () => {
    await Promise.all([plain.start(), replay.start()]);
  });
  afterAll(async () => {
    const [without, with_] = await Promise.all([plain.stop(), replay.stop()]);
    rmSync(folder, { recursive: true });
    // Without replayed frames, the comparison of the two agents would prove nothing.
    expect(without.replayedFrames).toBe(0);
    expect(with_.replayedFrames).toBeGreaterThan(sent / 10);
    expect(with_.frames).toBe(without.frames);
  });

  const same = (key: fc.Arbitrary<number>, atOnce: boolean, parameters: { numRuns: number; seed?: number }) =>
    fc.assert(
      fc.asyncProperty(sequence(key), async (steps) => {
        sent += steps.length;
        const [expected, given] = await Promise.all([plain.answers(steps, atOnce), replay.answers(steps, atOnce)]);
        expect(given).toEqual(expected);
      }),
      parameters,
    );
  const numRuns = sizeOf('replayed calls');
  const patience = 600_000;

  test(
    'answer the same to calls one by one, keys of the token among them',
    async () => {
      await same(fc.constantFrom(...keys), false, { numRuns });
    },
    patience,
  );

  test(
    'answer the same to calls that come in one piece',
    async () => {
      await same(fc.constantFrom(...keys.filter((key) => key >= firstKey)), true, { numRuns });
    },
    patience,
  );

  test('nothing is answered ahead of a call that waits for an Init, and may change what was learned', async () => {
    const pair = (of: number, under: number) => [
      message('C_EncryptInit', u64(of), mechanism(CKM.AES_ECB, form.none), u64(under)),
      message('C_Encrypt', u64(of), present(Buffer.alloc(16)), u32(64)),
    ];
    const steps = (before: number) => [
      ...Array.from({ length: before }, () => quietStep(1)),
      ...[1, 2].flatMap(() => pair(1, firstKey)),
      // The service has to be asked for it.
      message('C_DecryptInit', u64(2), mechanism(CKM.AES_ECB, form.none), u64(5)),
      message('C_SetAttributeValue', u64(2), u64(firstKey + 2), template(flag(CKA.SIGN, false))),
      ...Array.from({ length: 10 }, () => pair(1, firstKey)).flat(),
    ];
    // The change is carried out between two rounds of the loop, which has sixteen frames of a
    // connection in each.
    for (let before = 0; before < 16; before++) {
      expect(await replay.answers(steps(before), true)).toEqual(await plain.answers(steps(before), true));
    }
  });

  test('a pair of calls is a replay from its second time on, whatever its IV, and under several keys in turn', async () => {
    const rounds = Array.from({ length: 20 }, (_, i) => [
      message('C_EncryptInit', u64(1), mechanism(CKM.AES_CBC, flat(Buffer.alloc(16, i))), u64(firstKey + (i % 2))),
      message('C_Encrypt', u64(1), present(Buffer.alloc(48, i)), u32(64)),
    ]).flat();
    expect(await replay.answers(rounds, false)).toEqual(await plain.answers(rounds, false));
  });

  test('and so are an Init, an Update and a Final', async () => {
    const rounds = Array.from({ length: 20 }, (_, i) => [
      message('C_EncryptInit', u64(1), mechanism(CKM.AES_CBC, flat(Buffer.alloc(16, i))), u64(firstKey + (i % 2))),
      message('C_EncryptUpdate', u64(1), present(Buffer.alloc(48, i)), u32(48)),
      message('C_EncryptFinal', u64(1), u32(0)),
    ]).flat();
    expect(await replay.answers(rounds, false)).toEqual(await plain.answers(rounds, false));
  });

  test('what GCM has sealed is opened, and what was changed is not', async () => {
    const plaintext = Buffer.alloc(48, 1);
    const cipher = createCipheriv('aes-256-gcm', Buffer.alloc(32, 7), Buffer.alloc(12, 4));
    const sealed = Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
    const changed = Buffer.from(sealed);
    changed[50] = 0;
    const rounds = [sealed, sealed, sealed, changed, changed, sealed, sealed].flatMap((given) => [
      message('C_DecryptInit', u64(1), gcm(4), u64(firstKey)),
      message('C_Decrypt', u64(1), present(given), u32(64)),
    ]);
    const answers = await replay.answers(rounds, false);
    expect(answers).toEqual(await plain.answers(rounds, false));
    const opened = answers.filter((answer) => answer.endsWith(plaintext.toString('hex')));
    expect(opened).toHaveLength(5);
  });

  test('an IV of GCM encrypts once, whatever the session and the object of the key', async () => {
    const seal = (session: number, fill: number, key: number) => [
      message('C_EncryptInit', u64(session), gcm(fill), u64(key)),
      message('C_Encrypt', u64(session), present(Buffer.alloc(16)), u32(64)),
    ];
    const [same, again] = [firstKey + 3, firstKey];
    const crossed = [
      ...seal(1, 50, again).slice(0, 1),
      ...seal(2, 50, same).slice(0, 1),
      ...seal(1, 50, again).slice(1),
      ...seal(2, 50, same).slice(1),
    ];
    const rounds = [
      createKey(1, CKK.AES, 7, false),
      ...[1, 2, 3, 4].flatMap((fill) => [...seal(1, fill, again), ...seal(2, 16 + fill, same)]),
      ...[1, 17, 4, 20].flatMap((fill) => [...seal(1, fill, same), ...seal(2, fill, again)]),
      ...[30, 31, 32].flatMap((fill) => [...seal(1, fill, again), ...seal(2, fill + 3, same)]),
      ...crossed,
      ...seal(1, 51, again),
    ];
    expect(await replay.answers(rounds, false)).toEqual(await plain.answers(rounds, false));
  });
});

// --- when anything is learned --------------------------------------------------------------------

describe('replays', () => {
  const envelope = (name: CallName) => ({ name, request: message(name), reply: Buffer.from('answer') });
  const init = message('C_EncryptInit', u64(1), mechanism(CKM.AES_ECB, form.none), u64(firstKey));
  const repeatable = { key: 1 as never, unit: 16, direction: 'encrypt', cipher: { algorithm: 'aes-ecb' } } as const;

  const record = (uses = -1) => {
    const reported: string[] = [];
    const learned: Replay[] = [];
    const repeater: Pick<FrameServer, 'learn' | 'suspend' | 'resume' | 'forget'> = {
      learn: (_connection, replay) => {
        learned.push(replay);
        reported.push('learn');
        return uses;
      },
      suspend: (_connection, of, which) => reported.push(`suspend ${of} ${which}`),
      resume: (_connection, of, which) => reported.push(`resume ${of} ${which}`),
      forget: () => reported.push('forget'),
    };
    return { reported, learned, replays: new ReplayCache(1, repeater) };
  };
  const carryOut = (replays: ReplayCache): void => {
    replays.suspend(1, 'encrypt');
    replays.began(1, 'encrypt', envelope('C_EncryptInit'), init, init.length, repeatable);
    replays.ended(1, 'encrypt', envelope('C_Encrypt'), 'operation');
  };

  test('are learned when an operation succeeded, and contain nothing of its data', () => {
    const { learned, replays } = record();
    carryOut(replays);
    expect(learned).toHaveLength(1);
    expect(learned[0]).toMatchObject({ session: 1, kind: 0, unit: 16, ivLength: 0 });
    expect(Buffer.from(learned[0]?.init ?? [])).toEqual(init);
    expect(learned[0]).toMatchObject({ operation: message('C_Encrypt', u64(1)) });
  });

  const carryOutInParts = (replays: ReplayCache, parts: number): void => {
    replays.suspend(1, 'encrypt');
    replays.began(1, 'encrypt', envelope('C_EncryptInit'), init, init.length, repeatable);
    for (let i = 0; i < parts; i++) replays.continued(1, 'encrypt', envelope('C_EncryptUpdate'));
    replays.ended(1, 'encrypt', envelope('C_EncryptFinal'), 'last');
  };

  test('are learned from an operation of one part, not from one of none or of several', () => {
    const { learned, reported, replays } = record();
    for (const parts of [0, 2, 3]) carryOutInParts(replays, parts);
    expect(reported).toEqual([]);
    carryOutInParts(replays, 1);
    expect(learned).toMatchObject([
      { update: message('C_EncryptUpdate', u64(1)), last: message('C_EncryptFinal', u64(1)) },
    ]);
    expect(learned[0]).not.toHaveProperty('operation');
    carryOutInParts(replays, 2);
    expect(reported).toEqual(['learn', 'suspend 1 0', 'resume 1 0']);
  });

  test('an operation that keeps something back for its last part is not carried out in parts', () => {
    const { learned, replays } = record();
    replays.began(1, 'encrypt', envelope('C_EncryptInit'), init, init.length, {
      ...repeatable,
      cipher: { algorithm: 'aes-cbc-pad', iv: Buffer.alloc(16) },
    });
    replays.continued(1, 'encrypt', envelope('C_EncryptUpdate'));
    replays.ended(1, 'encrypt', envelope('C_EncryptFinal'), 'last');
    expect(learned).toEqual([]);
  });

  test('are suspended by an Init of their kind and forgotten by a change', () => {
    const { reported, replays } = record();
    carryOut(replays);
    carryOut(replays);
    replays.forget();
    replays.forget();
    expect(reported).toEqual(['learn', 'suspend 1 0', 'learn', 'forget']);
  });

  test('continue when another operation of their kind succeeded', () => {
    const { reported, replays } = record();
    carryOut(replays);
    replays.suspend(1, 'encrypt');
    replays.suspend(1, 'encrypt');
    replays.ended(1, 'encrypt', envelope('C_Encrypt'), 'operation');
    replays.ended(1, 'encrypt', envelope('C_Encrypt'), 'operation');
    expect(reported).toEqual(['learn', 'suspend 1 0', 'resume 1 0']);
  });

  test('are not learned while a call that may change something waits, nor across its end', async () => {
    const { reported, replays } = record();
    let end: () => void = () => undefined;
    replays.forgetUntil(
      new Promise<void>((resolve) => {
        end = resolve;
      }),
    );
    carryOut(replays);
    end();
    await Promise.resolve();
    await Promise.resolve();
    expect(reported).toEqual([]);
    carryOut(replays);
    expect(reported).toEqual(['learn']);
  });

  test('an operation whose Init was answered before a change teaches nothing', () => {
    const { reported, replays } = record();
    replays.began(1, 'encrypt', envelope('C_EncryptInit'), init, init.length, repeatable);
    replays.forget();
    replays.ended(1, 'encrypt', envelope('C_Encrypt'), 'operation');
    expect(reported).toEqual([]);
  });

  test('who uses too many keys for replays is left alone for a while', () => {
    const { learned, replays } = record(0);
    for (let i = 0; i < 1000; i++) carryOut(replays);
    expect(learned).toHaveLength(1);
    for (let i = 0; i < 100; i++) carryOut(replays);
    expect(learned).toHaveLength(2);
  });
});
