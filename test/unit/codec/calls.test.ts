// The agent's codec, call by call: the handler's view of a request, and the peer's view of the
// answer.
import { describe, expect, test, vi } from 'vitest';
import { createDispatcher, signatures } from '../../../provider/agent/codec/dispatcher.ts';
import { type Dialect, negotiate, ownVersion } from '../../../provider/agent/codec/wire.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { type CallName, calls, type Handlers, type Input } from '../../../provider/schema/calls.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { CKR } from '../../../provider/schema/return-values.ts';
import { type AttributeAnswers, CryptokiError, LengthOnly } from '../../../provider/schema/types.ts';

const u32 = (value: number): number[] => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
const u64 = (value: number): number[] =>
  value === -1 ? Array<number>(8).fill(255) : [...u32(Math.floor(value / 2 ** 32)), ...u32(value >>> 0)];
const array = (bytes: readonly number[]): number[] => [...u32(bytes.length), ...bytes];
const present = (bytes: readonly number[]): number[] => [1, ...array(bytes)];
const text = (value: string): number[] => [...Buffer.from(value, 'latin1')];

const message = (name: CallName, ...body: number[][]): Buffer =>
  Buffer.from([...u32(calls[name].code), ...array(text(signatures(calls[name]).request)), ...body.flat()]);
const answer = (name: CallName, ...body: number[][]): Buffer =>
  Buffer.from([...u32(calls[name].code), ...array(text(signatures(calls[name]).reply)), ...body.flat()]);
const refusal = (rv: number): Buffer => Buffer.from([...u32(0), ...array(text('u')), ...u64(rv)]);

const send = async (
  handlers: Handlers<null>,
  request: Buffer,
  dialect: Dialect = 'own',
  size = 4096,
): Promise<Buffer> => {
  const reply = Buffer.alloc(size);
  const frame = Buffer.concat([request, Buffer.alloc(64, 0xee)]);
  const length = createDispatcher(handlers)(null, dialect, frame, request.length, reply);
  if (typeof length !== 'number') return Buffer.from(await length);
  return length < 0 ? Buffer.alloc(0) : reply.subarray(0, length);
};

describe('a late answer', () => {
  test('leaves no copy of itself in memory that was too small for it', async () => {
    const taken: Buffer[] = [];
    const alloc = Buffer.alloc;
    // The first value fits into the first buffer, both together into the second.
    const values = [new Uint8Array(3000).fill(0xa5), new Uint8Array(3000).fill(0xa5)];
    const handlers: Handlers<null> = { C_GetAttributeValue: async () => ({ rv: CKR.OK, values }) };
    const queries = [CKA.VALUE, 3000, CKA.LABEL, 3000].flatMap(u32);
    const request = message('C_GetAttributeValue', u64(1), u64(2), u32(2), queries);
    const pending = createDispatcher(handlers)(null, 'own', request, request.length, Buffer.alloc(64));
    const spy = vi.spyOn(Buffer, 'alloc').mockImplementation((...given) => {
      const bytes = alloc.apply(Buffer, given);
      taken.push(bytes);
      return bytes;
    });
    try {
      const late = await pending;
      if (typeof late === 'number') throw new Error('the answer is not late');
      expect(late.filter((byte) => byte === 0xa5)).toHaveLength(6000);
      const others = taken.filter((bytes) => bytes.buffer !== late.buffer);
      expect(others.length).toBeGreaterThan(0);
      for (const bytes of others) expect(bytes.includes(0xa5)).toBe(false);
    } finally {
      spy.mockRestore();
    }
  });
});

describe('a message with more rows than a call may have', () => {
  const handlers: Handlers<null> = {
    C_CreateObject: () => 1,
    C_GetAttributeValue: (_, { template }) => ({ rv: CKR.OK, values: template.map(() => null) }),
  };
  const truth = [...u32(CKA.SIGN), 1, ...u32(1), 1];
  const rows = (count: number): number[] => [...u32(count), ...Array.from({ length: count }, () => truth).flat()];
  const nested = (count: number): number[] => [
    ...u32(1),
    ...u32(CKA.WRAP_TEMPLATE),
    1,
    ...u32(24 * count),
    ...rows(count),
  ];
  const mechanisms = (count: number): number[] => [
    ...u32(1),
    ...u32(CKA.ALLOWED_MECHANISMS),
    1,
    ...u32(8 * count),
    ...u32(count),
    ...Array.from({ length: count }, () => u64(CKM.AES_GCM)).flat(),
  ];
  const queries = (count: number): number[] => [
    ...u32(count),
    ...Array.from({ length: count }, () => [...u32(CKA.LABEL), ...u32(1)]).flat(),
  ];
  const create = (template: number[]) => send(handlers, message('C_CreateObject', u64(1), template), 'own', 1 << 20);
  const read = (template: number[]) =>
    send(handlers, message('C_GetAttributeValue', u64(1), u64(2), template), 'own', 1 << 20);

  test.each([
    ['a template', (count: number) => create(rows(count))],
    ['a template within a template', (count: number) => create(nested(count - 1))],
    ['a list of mechanisms', (count: number) => create(mechanisms(count - 1))],
    ['a query', (count: number) => read(queries(count))],
  ])('is refused: %s', async (_, sent) => {
    expect(await sent(4097)).toEqual(refusal(CKR.ARGUMENTS_BAD));
    expect(await sent(4096)).not.toEqual(refusal(CKR.ARGUMENTS_BAD));
    // The rows of one message do not count for the next one.
    expect(await sent(4096)).not.toEqual(refusal(CKR.ARGUMENTS_BAD));
  });
});

describe('signatures', () => {
  test('are p11-kit’s', () => {
    const known: Partial<Record<CallName, readonly [string, string]>> = {
      C_Initialize: ['ayyay', ''],
      C_GetInfo: ['', 'vsusv'],
      C_GetSlotList: ['yfu', 'au'],
      C_GetTokenInfo: ['u', 'ssssuuuuuuuuuuuvvs'],
      C_InitToken: ['uayz', ''],
      C_OpenSession: ['uu', 'u'],
      C_SetOperationState: ['uayuu', ''],
      C_GetAttributeValue: ['uufA', 'aAu'],
      C_FindObjects: ['ufu', 'au'],
      C_EncryptInit: ['uMu', ''],
      C_Encrypt: ['uayfy', 'ay'],
      C_Verify: ['uayay', ''],
      C_GenerateKeyPair: ['uMaAaA', 'uu'],
      C_UnwrapKey: ['uMuayaA', 'u'],
      C_GenerateRandom: ['ufy', 'ay'],
      C_WaitForSlotEvent: ['u', 'u'],
      C_LoginUser: ['uuayay', ''],
    };
    for (const [name, [request, reply]] of Object.entries(known)) {
      expect([name, signatures(calls[name as CallName])]).toEqual([name, { request, reply }]);
    }
  });
});

describe('C_Encrypt', () => {
  const data = [1, 2, 3, 4];
  const request = (capacity: number) => message('C_Encrypt', u64(7), present(data), u32(capacity));

  test('writes into the reply frame without a copy', async () => {
    const seen: unknown[] = [];
    const reply = await send(
      {
        C_Encrypt: (_, { session, data, encryptedData }) => {
          if (data instanceof LengthOnly) throw new Error('the data is there');
          seen.push(session, [...data], encryptedData.capacity, encryptedData.space.length);
          encryptedData.space.set(data);
          return data.length;
        },
      },
      request(16),
    );
    expect(seen).toEqual([7, data, 16, 16]);
    expect(reply).toEqual(answer('C_Encrypt', present(data)));
  });

  test('copies an array that a handler gives, also late', async () => {
    const bytes = Uint8Array.of(9, 8);
    expect(await send({ C_Encrypt: () => bytes }, request(16))).toEqual(answer('C_Encrypt', present([9, 8])));
    expect(await send({ C_Encrypt: async () => bytes }, request(16))).toEqual(answer('C_Encrypt', present([9, 8])));
  });

  test('returns only the length when the caller asked for it or the buffer is too small', async () => {
    const expected = answer('C_Encrypt', [0], u32(16));
    const capacities: (number | null)[] = [];
    const handlers: Handlers<null> = {
      C_Encrypt: (_, { encryptedData }) => {
        capacities.push(encryptedData.capacity);
        return new LengthOnly(16);
      },
    };
    expect(await send(handlers, request(0))).toEqual(expected);
    expect(await send(handlers, request(0xffffffff))).toEqual(expected);
    expect(await send(handlers, request(8))).toEqual(expected);
    expect(capacities).toEqual([null, 0, 8]);
    expect(await send({ C_Encrypt: () => new Uint8Array(16) }, request(8))).toEqual(expected);
  });

  test('offers at most the space that the frame has', async () => {
    let space = -1;
    const handlers: Handlers<null> = {
      C_Encrypt: (_, { encryptedData }) => {
        space = encryptedData.space.length;
        return 0;
      },
    };
    await send(handlers, request(1 << 30), 'own', 100);
    expect(space).toBe(100 - 8 - 2 - 5);
  });

  test('never answers bytes of `space` that were written after waiting', async () => {
    expect(await send({ C_Encrypt: async () => 4 }, request(16))).toEqual(refusal(CKR.GENERAL_ERROR));
  });
});

test('a handler that waits still knows its own caller’s room, whatever another asks for meanwhile', async () => {
  const seen: (number | null)[] = [];
  const dispatch = createDispatcher<null>({
    C_WrapKey: async (_, { wrappedKey }) => {
      await Promise.resolve();
      seen.push(wrappedKey.capacity);
      return new LengthOnly(40);
    },
  });
  const request = (room: number) =>
    message('C_WrapKey', u64(1), [...u32(CKM.AES_KEY_WRAP), 0], u64(2), u64(3), u32(room));
  const replies = [40, 0, 16].map((room) =>
    dispatch(null, 'own', request(room), request(room).length, Buffer.alloc(4096)),
  );
  await Promise.all(replies);
  expect(seen).toEqual([40, null, 16]);
});

describe('an Init that waits', () => {
  type Who = { readonly name: string };
  const steps: string[] = [];
  const inits: PromiseWithResolvers<void>[] = [];
  const step =
    (what: string) =>
    (_: Who, { session }: { readonly session: number }) => {
      steps.push(`${what} ${session}`);
    };
  const make = () => {
    steps.length = 0;
    inits.length = 0;
    const dispatch = createDispatcher<Who>({
      C_SignInit: async (_, { session }) => {
        const over = Promise.withResolvers<void>();
        inits.push(over);
        steps.push(`init ${session}`);
        await over.promise;
        steps.push(`ready ${session}`);
      },
      C_Sign: (_, { session, signature }) => {
        steps.push(`sign ${session}`);
        signature.space.fill(0xa5, 0, 4);
        return 4;
      },
      C_EncryptInit: step('encrypt'),
      C_GetSessionInfo: (_, { session }) => {
        steps.push(`info ${session}`);
        return { slot: 0, state: 0, flags: 0, deviceError: 0 };
      },
      C_SessionCancel: step('cancel'),
      C_CloseSession: step('close'),
    } as Handlers<Who>);
    const frame = (who: Who, request: Buffer) => {
      // The memory of a frame is wiped after the call, as in the agent, where all frames share it.
      const memory = Buffer.concat([request]);
      const reply = Buffer.alloc(4096);
      const result = dispatch(who, 'own', memory, memory.length, reply);
      memory.fill(0);
      return typeof result === 'number' ? Buffer.from(reply.subarray(0, result)) : result.then(Buffer.from);
    };
    return frame;
  };
  const init = (session: number) => message('C_SignInit', u64(session), [...u32(CKM.SHA256_HMAC), 0], u64(9));
  const sign = (session: number) => message('C_Sign', u64(session), present([1, 2]), u32(64));
  const encryptInit = (session: number) => message('C_EncryptInit', u64(session), [...u32(CKM.AES_ECB), 0], u64(9));
  const info = (session: number) => message('C_GetSessionInfo', u64(session));
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  test('is complete before the next frame of its session, whatever that is', async () => {
    const frame = make();
    const me = { name: 'a' };
    const answers = [frame(me, init(1)), frame(me, sign(1)), frame(me, info(1))];
    await turn();
    expect(steps).toEqual(['init 1']);
    inits[0]?.resolve();
    const [, signed] = await Promise.all(answers);
    expect(steps).toEqual(['init 1', 'ready 1', 'sign 1', 'info 1']);
    expect(signed).toEqual(answer('C_Sign', present([0xa5, 0xa5, 0xa5, 0xa5])));
    // Later calls of the session do not wait.
    expect(frame(me, sign(1))).toEqual(signed);
  });

  test('delays no other session, no other connection, no operation of another kind, and no one who gives up', async () => {
    const frame = make();
    const [me, other] = [{ name: 'a' }, { name: 'b' }];
    const waiting = frame(me, init(1));
    for (const [who, request] of [
      [me, sign(2)],
      [other, sign(1)],
      [me, encryptInit(1)],
      [me, message('C_SessionCancel', u64(1), u64(0))],
      [me, message('C_CloseSession', u64(1))],
    ] as const)
      expect(frame(who, request)).toBeInstanceOf(Buffer);
    expect(steps).toEqual(['init 1', 'sign 2', 'sign 1', 'encrypt 1', 'cancel 1', 'close 1']);
    inits[0]?.resolve();
    await waiting;
  });

  test('that fails lets the next frame find out, and a second Init replaces it', async () => {
    const frame = make();
    const me = { name: 'a' };
    const first = frame(me, init(1));
    const second = frame(me, init(1));
    const signed = frame(me, sign(1));
    inits[0]?.reject(new CryptokiError(CKR.KEY_HANDLE_INVALID, ''));
    expect(await first).toEqual(refusal(CKR.KEY_HANDLE_INVALID));
    await turn();
    expect(steps).toEqual(['init 1', 'init 1']);
    inits[1]?.reject(new CryptokiError(CKR.KEY_HANDLE_INVALID, ''));
    await Promise.all([second, signed]);
    expect(steps.at(-1)).toBe('sign 1');
  });
});

describe('a mechanism', () => {
  const dispatch = async (bytes: number[], dialect: Dialect) => {
    let seen: Input<'C_DigestInit'>['mechanism'] | undefined;
    const reply = await send(
      {
        C_DigestInit: (_, { mechanism }) => {
          seen = mechanism;
        },
      },
      message('C_DigestInit', u64(1), bytes),
      dialect,
    );
    return reply.equals(answer('C_DigestInit')) ? seen : reply;
  };
  const iv = Array.from({ length: 16 }, (_, i) => i);

  test('says its form in our dialect', async () => {
    expect(await dispatch([...u32(CKM.SHA256), 0], 'own')).toEqual({ type: CKM.SHA256, parameter: null });
    expect(await dispatch([...u32(CKM.AES_CBC), 1, ...array(iv)], 'own')).toEqual({
      type: CKM.AES_CBC,
      parameter: { kind: 'bytes', bytes: Uint8Array.from(iv) },
    });
    expect(
      await dispatch([...u32(CKM.AES_GCM), 4, ...array(iv), ...u64(128), ...array([5]), ...u64(96)], 'own'),
    ).toEqual({
      type: CKM.AES_GCM,
      parameter: { kind: 'gcm', iv: Uint8Array.from(iv), ivBits: 128, aad: Uint8Array.of(5), tagBits: 96 },
    });
    const hkdf = [1, 0, ...u64(0x250), ...u64(2), ...array([5]), ...u64(0), ...array([6])];
    expect(await dispatch([...u32(CKM.HKDF_DERIVE), 8, ...hkdf], 'own')).toEqual({
      type: CKM.HKDF_DERIVE,
      parameter: {
        kind: 'hkdf',
        extract: true,
        expand: false,
        hash: 0x250,
        saltType: 2,
        salt: Uint8Array.of(5),
        saltKey: 0,
        info: Uint8Array.of(6),
      },
    });
    const ccm = [...u64(3), ...array([1, 2]), ...array([4]), ...u64(16)];
    expect(await dispatch([...u32(CKM.AES_CCM), 9, ...ccm], 'own')).toEqual({
      type: CKM.AES_CCM,
      parameter: {
        kind: 'ccm',
        dataLength: 3,
        nonce: Uint8Array.of(1, 2),
        aad: Uint8Array.of(4),
        macLength: 16,
      },
    });
    expect(await dispatch([...u32(CKM.EDDSA), 10, 0, ...array([7])], 'own')).toEqual({
      type: CKM.EDDSA,
      parameter: { kind: 'eddsa', prehash: false, context: Uint8Array.of(7) },
    });
    expect(await dispatch([...u32(CKM.AES_ECB_ENCRYPT_DATA), 11, ...array([7])], 'own')).toEqual({
      type: CKM.AES_ECB_ENCRYPT_DATA,
      parameter: { kind: 'data', data: Uint8Array.of(7) },
    });
    expect(await dispatch([...u32(CKM.AES_CBC_ENCRYPT_DATA), 12, ...array(iv), ...array([7])], 'own')).toEqual({
      type: CKM.AES_CBC_ENCRYPT_DATA,
      parameter: { kind: 'ivdata', iv: Uint8Array.from(iv), data: Uint8Array.of(7) },
    });
    expect(await dispatch([...u32(CKM.AES_GCM), 99], 'own')).toEqual(refusal(CKR.DEVICE_ERROR));
  });

  test('has a null array in p11-kit 0.24 where it has no parameter, and structures for PSS and OAEP alone', async () => {
    expect(await dispatch([...u32(CKM.SHA256), ...u32(0xffffffff)], 'p11-kit-0.24')).toEqual({
      type: CKM.SHA256,
      parameter: null,
    });
    expect(await dispatch([...u32(CKM.RSA_PKCS_PSS), ...u64(0x250), ...u64(2), ...u64(32)], 'p11-kit-0.24')).toEqual({
      type: CKM.RSA_PKCS_PSS,
      parameter: { kind: 'pss', hash: 0x250, mgf: 2, saltLength: 32 },
    });
  });

  test('has nothing in p11-kit 0.26 where it has no parameter, else a byte that says so', async () => {
    expect(await dispatch(u32(CKM.SHA256), 'p11-kit-0.26')).toEqual({ type: CKM.SHA256, parameter: null });
    expect(await dispatch([...u32(CKM.AES_CTR), 1, ...u64(128), ...array(iv)], 'p11-kit-0.26')).toEqual({
      type: CKM.AES_CTR,
      parameter: { kind: 'ctr', counterBits: 128, block: Uint8Array.from(iv) },
    });
    expect(await dispatch([...u32(CKM.AES_CBC), 0], 'p11-kit-0.26')).toEqual({ type: CKM.AES_CBC, parameter: null });
  });

  test('is null when the operation is to be cancelled', async () => {
    expect(await dispatch(u32(0xffffffff), 'own')).toBeNull();
  });
});

describe('attributes', () => {
  test('are decoded by their kind', async () => {
    let seen: Input<'C_CreateObject'>['template'] = [];
    const rows = [
      [...u32(CKA.CLASS), 1, ...u32(8), ...u64(4)],
      [...u32(CKA.TOKEN), 1, ...u32(1), 1],
      [...u32(CKA.LABEL), 1, ...u32(2), ...array(text('ab'))],
      [...u32(CKA.DESTROYABLE), 1, ...u32(1), ...array([1])],
      [...u32(CKA.ID), 0],
      [...u32(CKA.ALLOWED_MECHANISMS), 1, ...u32(8), ...u32(1), ...u64(0x1082)],
      [...u32(CKA.WRAP_TEMPLATE), 1, ...u32(24), ...u32(1), ...u32(CKA.PRIVATE), 1, ...u32(1), 0],
    ];
    const reply = await send(
      {
        C_CreateObject: (_, { template }) => {
          seen = template;
          return 77;
        },
      },
      message('C_CreateObject', u64(1), u32(rows.length), rows.flat()),
    );
    expect(reply).toEqual(answer('C_CreateObject', u64(77)));
    expect(seen).toEqual([
      { type: CKA.CLASS, value: 4, length: 8 },
      { type: CKA.TOKEN, value: true, length: 1 },
      { type: CKA.LABEL, value: Uint8Array.from(text('ab')), length: 2 },
      { type: CKA.DESTROYABLE, value: true, length: 1 },
      { type: CKA.ID, value: null, length: -1 },
      { type: CKA.ALLOWED_MECHANISMS, value: [0x1082], length: 8 },
      { type: CKA.WRAP_TEMPLATE, value: [{ type: CKA.PRIVATE, value: false, length: 1 }], length: 24 },
    ]);
  });

  test('may be empty, whatever their kind', async () => {
    let seen: Input<'C_CreateObject'>['template'] = [];
    const rows = [
      [...u32(CKA.ALLOWED_MECHANISMS), 1, ...u32(0), ...u32(0)],
      [...u32(CKA.WRAP_TEMPLATE), 1, ...u32(0), ...u32(0)],
      [...u32(CKA.START_DATE), 1, ...u32(0), ...array([])],
      [...u32(CKA.ID), 1, ...u32(0), ...array([])],
    ];
    const handlers: Handlers<null> = {
      C_CreateObject: (_, { template }) => {
        seen = template;
        return 77;
      },
    };
    const reply = await send(handlers, message('C_CreateObject', u64(1), u32(rows.length), rows.flat()));
    expect(reply).toEqual(answer('C_CreateObject', u64(77)));
    expect(seen).toEqual([
      { type: CKA.ALLOWED_MECHANISMS, value: [], length: 0 },
      { type: CKA.WRAP_TEMPLATE, value: [], length: 0 },
      { type: CKA.START_DATE, value: new Uint8Array(0), length: 0 },
      { type: CKA.ID, value: new Uint8Array(0), length: 0 },
    ]);
    // A count that does not match the length is not a list.
    const broken = [...u32(CKA.ALLOWED_MECHANISMS), 1, ...u32(0), ...u32(1), ...u64(0x1082)];
    expect(await send(handlers, message('C_CreateObject', u64(1), u32(1), broken))).toEqual(refusal(CKR.DEVICE_ERROR));
  });

  test('nest eight deep and no deeper', async () => {
    const nest = (depth: number): number[] =>
      depth === 0 ? u32(0) : [...u32(1), ...u32(CKA.WRAP_TEMPLATE), 1, ...u32(24), ...nest(depth - 1)];
    const handlers: Handlers<null> = { C_CreateObject: () => 1 };
    expect(await send(handlers, message('C_CreateObject', u64(1), nest(8)))).toEqual(answer('C_CreateObject', u64(1)));
    expect(await send(handlers, message('C_CreateObject', u64(1), nest(9)))).toEqual(refusal(CKR.DEVICE_ERROR));
  });

  test('are answered one by one, whatever happens to the others', async () => {
    const queries = [
      [CKA.VALUE, 32],
      [CKA.LABEL, 10],
      [CKA.ID, 1],
      [CKA.VALUE_LEN, 0],
      [CKA.SENSITIVE, 1],
    ] as const;
    const answers: AttributeAnswers = {
      rv: CKR.ATTRIBUTE_SENSITIVE,
      values: [null, Uint8Array.of(1, 2), Uint8Array.of(3, 4), 32, true],
    };
    const reply = await send(
      { C_GetAttributeValue: async () => answers },
      message('C_GetAttributeValue', u64(1), u64(2), u32(queries.length), queries.flat().flatMap(u32)),
    );
    expect(reply).toEqual(
      answer(
        'C_GetAttributeValue',
        u32(5),
        [...u32(CKA.VALUE), 0],
        [...u32(CKA.LABEL), 1, ...u32(2), ...array([1, 2])],
        [...u32(CKA.ID), 0],
        [...u32(CKA.VALUE_LEN), 1, ...u32(8), ...u64(0)],
        [...u32(CKA.SENSITIVE), 1, ...u32(1), 1],
        u64(CKR.ATTRIBUTE_SENSITIVE),
      ),
    );
  });

  test('that do not fit make a good answer CKR_BUFFER_TOO_SMALL', async () => {
    const reply = await send(
      { C_GetAttributeValue: () => ({ rv: CKR.OK, values: [Uint8Array.of(3, 4)] }) },
      message('C_GetAttributeValue', u64(1), u64(2), u32(1), u32(CKA.ID), u32(1)),
    );
    expect(reply.subarray(-8)).toEqual(Buffer.from(u64(CKR.BUFFER_TOO_SMALL)));
  });
});

describe('structures and lists', () => {
  test('are padded with blanks and keep their order', async () => {
    const reply = await send(
      {
        C_GetSlotInfo: () => ({
          description: 'a slot',
          manufacturer: 'x'.repeat(40),
          flags: 5,
          hardwareVersion: { major: 1, minor: 2 },
          firmwareVersion: { major: 3, minor: 4 },
        }),
      },
      message('C_GetSlotInfo', u64(0)),
    );
    expect(reply).toEqual(
      answer('C_GetSlotInfo', array(text('a slot'.padEnd(64))), array(text('x'.repeat(32))), u64(5), [1, 2, 3, 4]),
    );
  });

  test('tell their count when only that is asked or the room is too small', async () => {
    const handlers: Handlers<null> = { C_GetMechanismList: () => [1, 2, 3] };
    const ask = (room: number) => send(handlers, message('C_GetMechanismList', u64(0), u32(room)));
    expect(await ask(0)).toEqual(answer('C_GetMechanismList', [0], u32(3)));
    expect(await ask(2)).toEqual(answer('C_GetMechanismList', [0], u32(3)));
    expect(await ask(3)).toEqual(answer('C_GetMechanismList', [1], u32(3), [1, 2, 3].flatMap(u64)));
  });

  test('several results come as an object', async () => {
    const template = u32(0);
    const reply = await send(
      { C_GenerateKeyPair: () => ({ publicKey: 5, privateKey: 6 }) },
      message('C_GenerateKeyPair', u64(1), [...u32(CKM.EC_KEY_PAIR_GEN), 0], template, template),
    );
    expect(reply).toEqual(answer('C_GenerateKeyPair', u64(5), u64(6)));
  });
});

describe('errors', () => {
  test('a CryptokiError becomes its return value, anything else a general error, now or late', async () => {
    const close = message('C_CloseSession', u64(1));
    const no = () => {
      throw new CryptokiError(CKR.SESSION_HANDLE_INVALID, 'no such session');
    };
    expect(await send({ C_CloseSession: no }, close)).toEqual(refusal(CKR.SESSION_HANDLE_INVALID));
    expect(await send({ C_CloseSession: async () => no() }, close)).toEqual(refusal(CKR.SESSION_HANDLE_INVALID));
    expect(
      await send(
        {
          C_CloseSession: () => {
            throw new TypeError('oops');
          },
        },
        close,
      ),
    ).toEqual(refusal(CKR.GENERAL_ERROR));
  });

  test('a call without a handler or of an unknown number is not supported', async () => {
    expect(await send({}, message('C_CloseSession', u64(1)))).toEqual(refusal(CKR.FUNCTION_NOT_SUPPORTED));
    expect(await send({}, Buffer.from([...u32(9999), ...array([])]))).toEqual(refusal(CKR.FUNCTION_NOT_SUPPORTED));
  });

  test('a foreign signature or no message at all closes the connection', async () => {
    expect(await send({}, Buffer.from([...u32(11), ...array(text('uu')), ...u64(1)]))).toHaveLength(0);
    expect(await send({}, Buffer.from([1, 2, 3]))).toHaveLength(0);
  });

  test('no prefix of a request and no longer request reaches a handler', async () => {
    const whole = message('C_Encrypt', u64(7), present([1, 2, 3, 4]), u32(16));
    let calls = 0;
    const handlers: Handlers<null> = {
      C_Encrypt: () => {
        calls++;
        return 0;
      },
    };
    for (let length = 0; length < whole.length; length++) await send(handlers, whole.subarray(0, length));
    await send(handlers, Buffer.concat([whole, Buffer.of(0)]));
    expect(calls).toBe(0);
    await send(handlers, whole);
    expect(calls).toBe(1);
  });

  test('an answer that exceeds the frame is an error, not a broken frame', async () => {
    const request = message('C_Encrypt', u64(7), present([1]), u32(1000));
    expect(await send({ C_Encrypt: () => new Uint8Array(900) }, request, 'own', 200)).toEqual(
      refusal(CKR.DEVICE_MEMORY),
    );
  });
});

test('the version byte distinguishes our library from peers of p11-kit', () => {
  expect(negotiate(ownVersion)).toEqual({ answer: ownVersion, dialect: 'own' });
  expect(negotiate(0)).toEqual({ answer: 0, dialect: 'p11-kit-0.24' });
  expect(negotiate(1)).toEqual({ answer: 0, dialect: 'p11-kit-0.24' });
  expect(negotiate(2)).toEqual({ answer: 0, dialect: 'p11-kit-0.26' });
});
