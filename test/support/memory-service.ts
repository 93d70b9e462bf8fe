// The service in memory: the agent's side of the TDE API's contract, kept by the same suite as the real one
// (test/contract/service.test.ts). Keys are in the core addon; nothing is stored.
import { randomUUID } from 'node:crypto';
import { type CipherParameters, CoreError, core, type KeyRef } from '../../addon/core.ts';
import type {
  Answer,
  Caller,
  Head,
  RouteName,
  ServiceAnswer,
  ServiceDoor,
  ServiceRequest,
} from '../../provider/client/service.ts';
import { ServiceCallError } from '../../provider/client/service.ts';
import type { ServiceErrorCode } from '../../server/base/errors.ts';
import type { CipherHead, CreateObject, KeyUsage, TokenObject } from '../../server/fronts/contract/tde.ts';

interface Stored {
  object: TokenObject;
  readonly key: KeyRef | null;
  readonly value: Uint8Array | null;
}

export interface MemoryService extends ServiceDoor {
  /** Requests so far, by route. */
  readonly asked: ReadonlyMap<RouteName, number>;
  /** What an operator does in the console. */
  setState(label: string, state: TokenObject['state'] | 'destroyed'): void;
  /** From now on every call fails so; null ends it. */
  failWith(code: ServiceErrorCode | null): void;
  /** Holds every answer back until the returned function is called. */
  hold(): () => void;
}

class Refused extends Error {
  readonly code: ServiceErrorCode;
  constructor(code: ServiceErrorCode) {
    super(code);
    this.code = code;
  }
}

const parametersOf = (head: CipherHead): CipherParameters => {
  const bytes = (text: string): Buffer => Buffer.from(text, 'base64');
  switch (head.mode) {
    case 'ecb':
      return { algorithm: 'aes-ecb' };
    case 'ctr':
      return { algorithm: 'aes-ctr', iv: bytes(head.iv), counterBits: head.counterBits };
    case 'gcm':
      return { algorithm: 'aes-gcm', iv: bytes(head.iv), aad: bytes(head.aad), tagLength: head.tagLength };
    default:
      return { algorithm: `aes-${head.mode}`, iv: bytes(head.iv) };
  }
};

export const openMemoryService = (name = 'memory'): MemoryService => {
  const stored = new Map<number, Stored>();
  const asked = new Map<RouteName, number>();
  let nextHandle = 1;
  let failure: ServiceErrorCode | null = null;
  let held: Promise<void> = Promise.resolve();

  const find = (handle: number | null): Stored => {
    const found = stored.get(handle ?? 0);
    if (found === undefined) throw new Refused('not-found');
    return found;
  };
  const keyFor = (handle: number | null, usage: KeyUsage): KeyRef => {
    const { object, key } = find(handle);
    if (key === null) throw new Refused('key-usage');
    if (object.state === 'disabled') throw new Refused('key-disabled');
    if (!object.usages.includes(usage)) throw new Refused('key-usage');
    return key;
  };
  const keep = (head: CreateObject, key: KeyRef | null, value: Uint8Array | null, local: boolean): TokenObject => {
    const isKey = (objectClass: string): boolean => objectClass.endsWith('-key');
    const taken = [...stored.values()].some(
      ({ object }) =>
        object.label === head.label &&
        head.label !== '' &&
        isKey(object.class) &&
        isKey(head.class) &&
        // The halves of a pair share a label.
        (object.class === head.class || object.class === 'secret-key' || head.class === 'secret-key'),
    );
    if (taken) throw new Refused('label-exists');
    const object: TokenObject = {
      ...head,
      handle: nextHandle++,
      id: randomUUID(),
      local,
      checkValue: key === null ? null : core.checkValue(key).toString('base64'),
      createdAt: new Date().toISOString(),
      state: 'active',
      owned: true,
    };
    stored.set(object.handle, { object, key, value });
    return object;
  };
  const crypt = (direction: 'encrypt' | 'decrypt', handle: number | null, head: CipherHead, raw: Uint8Array) => {
    const out = Buffer.alloc(raw.length + 32);
    const length = core.cipher(keyFor(handle, direction), direction, parametersOf(head), raw, out);
    return { answer: {}, raw: out.subarray(0, length) };
  };

  const none = new Uint8Array(0);
  const routes: {
    [R in RouteName]: (
      handle: number | null,
      head: Head<R>,
      raw: Uint8Array,
    ) => { answer: Answer<R>; raw?: Uint8Array };
  } = {
    info: () => ({
      answer: {
        applicationId: 'c0ffee00-0000-4000-8000-000000000001',
        applicationName: name,
        groupId: 'group',
        tenantId: 'tenant',
        serverVersion: '1.0.0',
        epoch: nextHandle,
      },
    }),
    generateKey: (_handle, head) => {
      const bits = head.bits ?? 0;
      if (head.algorithm === 'aes' && bits !== 128 && bits !== 192 && bits !== 256) throw new Refused('validation');
      const key = head.algorithm === 'aes' ? core.generateAes(bits as 128 | 192 | 256) : core.generateGeneric(bits / 8);
      return { answer: keep(head, key, null, true) };
    },
    createObject: (_handle, head, raw) => {
      const isKey = head.class === 'secret-key';
      const key = isKey ? core.importSecret(head.algorithm === 'aes' ? 'aes' : 'generic', raw) : null;
      return { answer: keep(head, key, isKey ? null : raw.slice(), false) };
    },
    findObjects: (_handle, { label, class: objectClass, after, limit }) => {
      const matching = [...stored.values()]
        .map(({ object }) => object)
        .filter((each) => each.handle > after)
        .filter((each) => label === undefined || each.label === label)
        .filter((each) => objectClass === undefined || each.class === objectClass);
      return { answer: { objects: matching.slice(0, limit), more: matching.length > limit } };
    },
    getObject: (handle) => ({ answer: find(handle).object }),
    readValue: (handle) => {
      const { object, key, value } = find(handle);
      if (value !== null) return { answer: {}, raw: value.slice() };
      if (key === null || object.sensitive || !object.extractable) throw new Refused('forbidden');
      return { answer: {}, raw: core.exportSecret(key) };
    },
    updateObject: (handle, head) => {
      const entry = find(handle);
      if (!entry.object.modifiable) throw new Refused('forbidden');
      entry.object = { ...entry.object, ...head };
      return { answer: entry.object };
    },
    destroyObject: (handle) => {
      const { object, key } = find(handle);
      if (!object.destroyable) throw new Refused('forbidden');
      if (key !== null) core.release(key);
      stored.delete(object.handle);
      return { answer: {} };
    },
    checkUse: (handle, { usage }) => {
      keyFor(handle, usage);
      return { answer: {} };
    },
    encrypt: (handle, head, raw) => crypt('encrypt', handle, head, raw),
    decrypt: (handle, head, raw) => crypt('decrypt', handle, head, raw),
    sign: (handle, head, raw) => {
      const out = Buffer.alloc(64);
      const parameters = head.algorithm === 'hmac' ? head : ({ algorithm: 'aes-cmac' } as const);
      return { answer: {}, raw: out.subarray(0, core.mac(keyFor(handle, 'sign'), parameters, raw, out)) };
    },
    verify: (handle, head, raw) => {
      const message = Buffer.from(raw);
      const length = message.readUInt32BE(0);
      const out = Buffer.alloc(64);
      const parameters = head.algorithm === 'hmac' ? head : ({ algorithm: 'aes-cmac' } as const);
      const made = core.mac(keyFor(handle, 'verify'), parameters, message.subarray(4 + length), out);
      const given = message.subarray(4, 4 + length);
      if (made !== length || !core.timingSafeEqual(out.subarray(0, made), given))
        throw new Refused('invalid-ciphertext');
      return { answer: {} };
    },
  };

  const codeOf = (error: unknown): ServiceErrorCode => {
    if (error instanceof Refused) return error.code;
    if (!(error instanceof CoreError)) return 'internal';
    const codes: Partial<Record<CoreError['code'], ServiceErrorCode>> = {
      'authentication-failed': 'invalid-ciphertext',
      'data-length': 'data-length',
    };
    return codes[error.code] ?? 'internal';
  };

  return {
    asked,
    async call<R extends RouteName>({ route, handle, head, raw }: ServiceRequest<R>, { requestId }: Caller) {
      asked.set(route, (asked.get(route) ?? 0) + 1);
      // Always later, as over a network.
      await held;
      try {
        if (failure !== null) throw new Refused(failure);
        const { answer, raw: out } = routes[route](handle, head, raw ?? none);
        return { answer, raw: out ?? none } satisfies ServiceAnswer<R>;
      } catch (error) {
        throw new ServiceCallError(codeOf(error), 'refused', requestId);
      } finally {
        raw?.fill(0);
      }
    },
    async close() {
      for (const { key } of stored.values()) if (key !== null) core.release(key);
      stored.clear();
    },
    setState(label, state) {
      const wanted = Buffer.from(label).toString('base64');
      for (const entry of stored.values()) {
        if (entry.object.label !== wanted) continue;
        if (state === 'destroyed') stored.delete(entry.object.handle);
        else entry.object = { ...entry.object, state };
      }
    },
    failWith(code) {
      failure = code;
    },
    hold() {
      let release = (): void => undefined;
      held = new Promise((resolve) => {
        release = resolve;
      });
      return () => release();
    },
  };
};
