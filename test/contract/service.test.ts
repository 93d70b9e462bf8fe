// The service as the agent needs it (server/contract/tde.ts), over the way that the agent
// takes.
import { createHook } from 'node:async_hooks';
import { createHash, createPublicKey, generateKeyPairSync, randomBytes, verify } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Head, RouteName, ServiceDoor } from '../../provider/agent/service/service-door.ts';
import { openHttpService } from '../../provider/agent/service/service-http.ts';
import { loadConfig, parseConfig } from '../../provider/agent/settings/config.ts';
import { ownUser } from '../../provider/agent/settings/user-files.ts';
import { type CreateObject, instanceText, type TdeRoutes } from '../../server/contract/tde.ts';
import { dataObject, instance } from '../support/open-service.ts';
import { codeOfWork } from '../support/outcomes.ts';
import { startService, writeConfig } from '../support/pkcs11-host.ts';

const caller = (requestId: string = crypto.randomUUID()) => ({ requestId, instance: instanceText(instance) });
const base64 = (text: string): string => Buffer.from(text).toString('base64');

const masterKey = (label: string): CreateObject => ({
  class: 'secret-key',
  label: base64(label),
  algorithm: 'aes',
  bits: 256,
  usages: ['encrypt', 'decrypt', 'wrap', 'unwrap'],
  sensitive: true,
  extractable: false,
  modifiable: false,
  destroyable: true,
  private: true,
  attributes: base64('\x01'),
});

interface Opened {
  readonly door: ServiceDoor;
  readonly close: () => Promise<void>;
}

/** The real server, reached as the agent reaches it. */
const open = async (): Promise<Opened> => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-contract-'));
  const service = await startService();
  const door = openHttpService(await loadConfig(writeConfig(folder, service)));
  return {
    door,
    async close() {
      await door.close();
      await service.stop();
      rmSync(folder, { recursive: true });
    },
  };
};

describe('the service', () => {
  let opened: Opened;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened?.close());

  const ask = <R extends RouteName>(route: R, handle: number | null, head: Head<R>, raw: string | Uint8Array = '') =>
    opened.door.call({ route, handle, head, raw: new Uint8Array(Buffer.from(raw)) }, caller());

  test('names the application', async () => {
    const { answer } = await ask('info', null, {});
    expect(answer.applicationName).not.toBe('');
    expect(answer.applicationId).not.toBe('');
  });

  test('makes a key that keeps what it was made with', async () => {
    const head = masterKey('made');
    const { answer } = await ask('generateKey', null, head);
    expect(answer).toMatchObject({ ...head, local: true, state: 'active', owned: true });
    expect(Buffer.from(answer.checkValue ?? '', 'base64')).toHaveLength(3);
    // The version is that of the row, which the answer of a creation does not name yet.
    expect((await ask('getObject', answer.handle, {})).answer).toEqual({ ...answer, version: expect.any(Number) });
  });

  test('encrypts and decrypts, as raw CBC', async () => {
    const { handle } = (await ask('generateKey', null, masterKey('cbc'))).answer;
    const head = { algorithm: 'aes-cbc', iv: Buffer.alloc(16, 1).toString('base64') } as const;
    const data = Buffer.alloc(48, 7);
    const { raw } = await ask('encrypt', handle, head, data);
    expect(raw).toHaveLength(48);
    expect(Buffer.from((await ask('decrypt', handle, head, raw)).raw)).toEqual(data);
    expect(await codeOfWork(ask('encrypt', handle, head, data.subarray(1)))).toBe('data-length');
  });

  test('GCM that does not authenticate is an invalid ciphertext', async () => {
    const { handle } = (await ask('generateKey', null, masterKey('gcm'))).answer;
    const head = { algorithm: 'aes-gcm', iv: Buffer.alloc(12, 1).toString('base64'), aad: '', tagLength: 16 } as const;
    const { raw } = await ask('encrypt', handle, head, 'data');
    raw[0] = (raw[0] ?? 0) ^ 1;
    expect(await codeOfWork(ask('decrypt', handle, head, raw))).toBe('invalid-ciphertext');
  });

  test('one IV under GCM and CCM is for one message of a key: another one is refused, the same one again is the same', async () => {
    const { handle } = (await ask('generateKey', null, masterKey('one IV'))).answer;
    const { handle: other } = (await ask('generateKey', null, masterKey('one IV, other key'))).answer;
    const iv = Buffer.alloc(12, 7).toString('base64');
    const gcm = { algorithm: 'aes-gcm', iv, aad: '', tagLength: 16 } as const;
    const first = await ask('encrypt', handle, gcm, 'data');
    expect(await codeOfWork(ask('encrypt', handle, gcm, 'date'))).toBe('conflict');
    expect(await codeOfWork(ask('encrypt', handle, gcm, ''))).toBe('conflict');
    expect(await codeOfWork(ask('encrypt', handle, { ...gcm, aad: 'AAAA' }, 'data'))).toBe('conflict');
    expect(
      await codeOfWork(
        ask('encrypt', handle, { algorithm: 'aes-ccm', iv, aad: '', tagLength: 16, dataLength: 4 }, 'data'),
      ),
    ).toBe('conflict');
    expect((await ask('encrypt', handle, gcm, 'data')).raw).toEqual(first.raw);
    expect(await codeOfWork(ask('encrypt', other, gcm, 'date'))).toBe('none');
    expect(String((await ask('decrypt', handle, gcm, first.raw)).raw)).toBe('data');
    const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16, 7).toString('base64') } as const;
    for (const byte of [1, 2])
      expect(await codeOfWork(ask('encrypt', handle, cbc, Buffer.alloc(16, byte)))).toBe('none');
  });

  test.each(['gcm', 'ccm'] as const)(
    'a %s message part by part is the message, and continues in one way only',
    async (mode) => {
      const { handle } = (await ask('generateKey', null, masterKey(`parts ${mode}`))).answer;
      const { handle: other } = (await ask('generateKey', null, masterKey(`parts ${mode}, other key`))).answer;
      const data = randomBytes(100_001);
      const [aad, iv] = [base64('known'), randomBytes(12).toString('base64')];
      const cipher = {
        algorithm: `aes-${mode}`,
        iv,
        aad,
        tagLength: 16,
        ...(mode === 'ccm' ? { dataLength: data.length } : {}),
      } as Extract<TdeRoutes['encrypt']['head'], { algorithm: 'aes-gcm' | 'aes-ccm' }>;
      const later = { ...cipher, aad: '' };
      type Use = Head<'cipherPart'>['use'];
      const part = (use: Use, state: string, raw: Uint8Array, last = false, to = handle) =>
        ask('cipherPart', to, { use, cipher: state === '' ? cipher : later, state, last }, raw);
      const [front, rest] = [data.subarray(0, 40_003), data.subarray(40_003)];

      const first = await part('encrypt', '', front);
      const again = await part('encrypt', '', front);
      expect([again.answer.state, Buffer.compare(again.raw, first.raw)]).toEqual([first.answer.state, 0]);
      const last = await part('encrypt', first.answer.state, rest, true);
      expect(last.answer.state).toBe('');
      const sealed = Buffer.concat([first.raw, last.raw]);
      expect(sealed).toHaveLength(data.length + 16);
      expect(Buffer.compare((await ask('decrypt', handle, cipher, sealed)).raw, data)).toBe(0);

      // Another message under the IV, from its beginning or from the middle.
      expect(await codeOfWork(part('encrypt', '', rest))).toBe('conflict');
      expect(await codeOfWork(part('encrypt', first.answer.state, Buffer.alloc(rest.length, 1), true))).toBe(
        'conflict',
      );
      expect(await codeOfWork(part('encrypt', first.answer.state, rest.subarray(1)))).toBe('conflict');
      expect(await codeOfWork(ask('encrypt', handle, cipher, data))).toBe('conflict');
      // A state that belongs elsewhere.
      expect(await codeOfWork(part('encrypt', first.answer.state, rest, true, other))).toBe('validation');
      expect(await codeOfWork(part('check', first.answer.state, rest, true))).toBe('validation');
      expect(await codeOfWork(part('encrypt', base64('made up'), rest))).toBe('conflict');
      const changed = Buffer.from(first.answer.state, 'base64');
      changed[40] = (changed[40] ?? 0) ^ 1;
      expect(await codeOfWork(part('encrypt', changed.toString('base64'), rest))).toBe('validation');

      const open = async (use: Use, bytes: Buffer) => {
        const begun = await part(use, '', bytes.subarray(0, 70_000));
        const ended = await part(use, begun.answer.state, bytes.subarray(70_000), true);
        return Buffer.concat([begun.raw, ended.raw]);
      };
      expect((await open('check', sealed)).length).toBe(0);
      expect(Buffer.compare(await open('decrypt', sealed), data)).toBe(0);
      sealed[50_000] = (sealed[50_000] ?? 0) ^ 1;
      for (const use of ['check', 'decrypt'] as const)
        expect(await codeOfWork(open(use, sealed))).toBe('invalid-ciphertext');
    },
  );

  test.each([
    { algorithm: 'hmac', digest: 'sha256' },
    { algorithm: 'hmac', digest: 'sha3-512' },
    { algorithm: 'aes-cmac' },
  ] as const)('a MAC of parts is the MAC of the whole: %o', async (mac) => {
    const algorithm = mac.algorithm === 'hmac' ? 'generic' : 'aes';
    const label = `mac ${JSON.stringify(mac)}`;
    const head: CreateObject = { ...masterKey(label), algorithm, usages: ['sign', 'verify'] };
    const { handle } = (await ask('generateKey', null, head)).answer;
    const data = randomBytes(70_001);
    const whole = Buffer.from((await ask('sign', handle, mac, data)).raw);
    const sign = { use: 'sign', mac } as const;
    const first = await ask('macPart', handle, { ...sign, state: '', last: false }, data.subarray(0, 33_333));
    const state = first.answer.state;
    expect(first.raw).toHaveLength(0);
    const made = await ask('macPart', handle, { ...sign, state, last: true }, data.subarray(33_333));
    expect(Buffer.compare(made.raw, whole)).toBe(0);

    const verify = { use: 'verify', mac, state, last: true } as const;
    const signed = (signature: Uint8Array) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(signature.length);
      return Buffer.concat([length, signature, data.subarray(33_333)]);
    };
    expect(await codeOfWork(ask('macPart', handle, verify, signed(whole)))).toBe('none');
    const short = whole.subarray(0, 8);
    expect(await codeOfWork(ask('macPart', handle, { ...verify, length: 8 }, signed(short)))).toBe('none');
    expect(await codeOfWork(ask('macPart', handle, verify, signed(short)))).toBe('invalid-ciphertext');
    whole[3] = (whole[3] ?? 0) ^ 1;
    expect(await codeOfWork(ask('macPart', handle, verify, signed(whole)))).toBe('invalid-ciphertext');
  });

  test('CCM with the length of its data, and what is wrong with it, by name', async () => {
    const { handle } = (await ask('generateKey', null, masterKey('ccm'))).answer;
    const head = {
      algorithm: 'aes-ccm',
      iv: Buffer.alloc(12, 1).toString('base64'),
      aad: '',
      tagLength: 8,
      dataLength: 5,
    } as const;
    const { raw } = await ask('encrypt', handle, head, 'hello');
    expect(raw).toHaveLength(13);
    expect(Buffer.from((await ask('decrypt', handle, head, raw)).raw).toString()).toBe('hello');
    expect(await codeOfWork(ask('encrypt', handle, { ...head, dataLength: 4 }, 'hello'))).toBe('data-length');
    expect(await codeOfWork(ask('encrypt', handle, { ...head, tagLength: 7 }, 'hello'))).toBe('validation');
    expect(await codeOfWork(ask('decrypt', handle, head, Buffer.alloc(13)))).toBe('invalid-ciphertext');
  });

  test('derives by encryption under a key that is not sensitive, and no other', async () => {
    const mechanism = { way: 'encryption', cipher: { algorithm: 'aes-ecb' } } as const;
    const made = (label: string) => ({ ...masterKey(label), sensitive: false, extractable: true, bits: 128 });
    const derive = (handle: number, label: string, data: Uint8Array) =>
      ask('derive', handle, { mechanism, into: { on: 'token', object: made(label) } }, data);
    const bases = [true, false].map((sensitive) => ({
      ...made(`base ${sensitive}`),
      sensitive,
      usages: ['derive', 'encrypt'] as const,
    }));
    const [kept = 0, open = 0] = await Promise.all(
      bases.map(async (base) => (await ask('generateKey', null, base)).answer.handle),
    );
    const data = Buffer.alloc(32, 7);
    expect(await codeOfWork(derive(kept, 'derived', data))).toBe('key-usage');
    const { object } = (await derive(open, 'derived', data)).answer;
    const encrypted = (await ask('encrypt', open, { algorithm: 'aes-ecb' }, data)).raw;
    const { raw } = await ask('readValue', object?.handle ?? 0, {});
    expect(Buffer.from(raw)).toEqual(Buffer.from(encrypted.subarray(0, 16)));
    expect(await codeOfWork(derive(open, 'shorter', data.subarray(0, 15)))).toBe('data-length');
  });

  test('a label names one key', async () => {
    await ask('generateKey', null, masterKey('once'));
    expect(await codeOfWork(ask('generateKey', null, masterKey('once')))).toBe('label-exists');
  });
  test('a public key takes no secret key’s label, and an absent label is not a name', async () => {
    const publicKey = (label: string) => ({
      ...masterKey(label),
      class: 'public-key' as const,
      algorithm: 'rsa' as const,
      bits: null,
      usages: ['verify'] as const,
    });
    const spki = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'der', type: 'spki' });
    await ask('generateKey', null, masterKey('secret'));
    expect(await codeOfWork(ask('createObject', null, publicKey('secret'), spki))).toBe('label-exists');
    expect(await codeOfWork(ask('createObject', null, publicKey('no key'), 'spki'))).toBe('validation');
    for (let i = 0; i < 2; i++) {
      expect(await codeOfWork(ask('createObject', null, publicKey(''), spki))).toBe('none');
      expect(await codeOfWork(ask('generateKey', null, masterKey('')))).toBe('none');
    }
  });

  test('finds by label, exactly, and page by page', async () => {
    for (const label of ['page-1', 'page-2', 'page-3']) await ask('generateKey', null, masterKey(label));
    const one = await ask('findObjects', null, { label: base64('page-2'), after: 0, limit: 10 });
    expect(one.answer.objects.map(({ label }) => label)).toEqual([base64('page-2')]);
    expect((await ask('findObjects', null, { label: base64('PAGE-2'), after: 0, limit: 10 })).answer.objects).toEqual(
      [],
    );
    const seen: number[] = [];
    for (let after = 0, more = true; more; ) {
      const { answer } = await ask('findObjects', null, { class: 'secret-key', after, limit: 2 });
      expect(answer.objects.length).toBeLessThanOrEqual(2);
      seen.push(...answer.objects.map(({ handle }) => handle));
      after = seen.at(-1) ?? 0;
      more = answer.more;
    }
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
    expect(seen.length).toBeGreaterThanOrEqual(3);
  });

  test('does not let a sensitive key out, and gives a data object back', async () => {
    const { handle } = (await ask('generateKey', null, masterKey('inside'))).answer;
    expect(await codeOfWork(ask('readValue', handle, {}))).not.toBe('none');
    const data = await ask('createObject', null, dataObject('data'), 'value');
    expect(String(Buffer.from((await ask('readValue', data.answer.handle, {})).raw))).toBe('value');
  });

  test('a key does what it may', async () => {
    const { handle } = (await ask('generateKey', null, { ...masterKey('only'), usages: ['decrypt'] })).answer;
    expect(await codeOfWork(ask('checkUse', handle, { usage: 'decrypt' }))).toBe('none');
    expect(await codeOfWork(ask('checkUse', handle, { usage: 'encrypt' }))).toBe('key-usage');
    expect(await codeOfWork(ask('encrypt', handle, { algorithm: 'aes-ecb' }, Buffer.alloc(16)))).toBe('key-usage');
  });

  test('a pair signs in the service, and its public half comes with it', async () => {
    const half = (objectClass: 'private-key' | 'public-key', usages: CreateObject['usages']): CreateObject => ({
      ...masterKey('pair'),
      ...{ class: objectClass, algorithm: 'ec', bits: 256, usages, sensitive: objectClass === 'private-key' },
    });
    const heads = { privateKey: half('private-key', ['sign']), publicKey: half('public-key', ['verify']) };
    const { privateKey, publicKey } = (await ask('generateKeyPair', null, heads)).answer;
    expect(publicKey?.publicKey).toBe(privateKey.publicKey);
    const spki = { key: Buffer.from(privateKey.publicKey ?? '', 'base64'), format: 'der', type: 'spki' } as const;
    const data = Buffer.from('signed');
    const digest = createHash('sha256').update(data).digest();
    const { raw } = await ask('sign', privateKey.handle, { algorithm: 'ecdsa' }, digest);
    const node = { key: createPublicKey(spki), dsaEncoding: 'ieee-p1363' } as const;
    expect(verify('sha256', data, node, raw)).toBe(true);
    expect(await codeOfWork(ask('readValue', privateKey.handle, {}))).toBe('forbidden');
  });

  test('a key wraps another, and unwraps it onto the token', async () => {
    const wraps: CreateObject = { ...masterKey('wraps'), usages: ['wrap', 'unwrap'] };
    const by = (await ask('generateKey', null, wraps)).answer.handle;
    const mechanism = { way: 'key-wrap', padded: true } as const;
    const out = (await ask('generateKey', null, { ...masterKey('out'), extractable: true })).answer;
    const { raw } = await ask('wrap', by, { mechanism, key: { from: 'token', handle: out.handle } });
    expect(raw).toHaveLength(40);
    const back: CreateObject = { ...masterKey('back'), bits: null };
    const { object } = (await ask('unwrap', by, { mechanism, into: { on: 'token', object: back } }, raw)).answer;
    expect(object).toMatchObject({ bits: 256, local: false, checkValue: out.checkValue });
    raw[5] = (raw[5] ?? 0) ^ 1;
    const again: CreateObject = { ...masterKey('again'), bits: null };
    expect(await codeOfWork(ask('unwrap', by, { mechanism, into: { on: 'token', object: again } }, raw))).toBe(
      'invalid-ciphertext',
    );
    const hidden = (await ask('generateKey', null, masterKey('hidden'))).answer.handle;
    expect(await codeOfWork(ask('wrap', by, { mechanism, key: { from: 'token', handle: hidden } }))).toBe('forbidden');
  });

  test('every answer contains an epoch, which is not newer than what it tells, and increases with a change', async () => {
    // What the service does on its own may change something, too: it ends.
    const first = await vi.waitFor(
      async () => {
        const asked = await ask('info', null, {});
        expect((await ask('info', null, {})).epoch).toBe(asked.epoch);
        return asked;
      },
      { timeout: 300_000 },
    );
    // The answer of a change is of the epoch in which it was asked for; the next one is of a later
    // one.
    expect((await ask('generateKey', null, masterKey('moves'))).epoch).toBe(first.epoch);
    expect((await ask('info', null, {})).epoch).toBeGreaterThan(first.epoch);
  });

  test('an object that does not exist, or does no longer, is gone for every route', async () => {
    const { handle } = (await ask('generateKey', null, masterKey('gone'))).answer;
    await ask('destroyObject', handle, {});
    for (const target of [handle, 2 ** 30]) {
      const codes = await Promise.all([
        codeOfWork(ask('getObject', target, {})),
        codeOfWork(ask('checkUse', target, { usage: 'encrypt' })),
        codeOfWork(ask('encrypt', target, { algorithm: 'aes-ecb' }, Buffer.alloc(16))),
        codeOfWork(ask('destroyObject', target, {})),
      ]);
      for (const code of codes) expect(['not-found', 'key-not-found', 'key-destroyed']).toContain(code);
    }
  });
});

describe('the way over HTTPS', () => {
  const guid = 'guid';
  const config = (origin: string, extra = '') => ({
    ...parseConfig('/p', `server_url = "https://x/tde/v1/${guid}/app"\naccess_token = "${guid}"\n${extra}`, ownUser()),
    origin,
  });
  const serve = async (handler: Parameters<typeof createServer>[1], callTimeoutMs = 60_000) => {
    const server = createServer(handler);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const door = openHttpService(
      config(`http://127.0.0.1:${port}`, `connect_timeout_ms = 60000\ncall_timeout_ms = ${callTimeoutMs}\n`),
    );
    const call = () =>
      door.call({ route: 'info', handle: null, head: {}, raw: null }, caller('the-id')).then(
        () => 'none',
        (error) => error as { code: string; requestId: string; message: string },
      );
    const stop = async () => {
      await door.close();
      server.closeAllConnections();
      server.close();
    };
    return { call, door, stop };
  };

  test("a service that does not answer is a time-out, with the call's id", async () => {
    const { call, stop } = await serve(() => undefined, 200);
    expect(await call()).toMatchObject({ code: 'dependency-timeout', requestId: 'the-id' });
    await stop();
  });
  test('a pair of keys, whose primes take their time, is waited for longer than another call', async () => {
    const pairs: ServerResponse[] = [];
    const { call, door, stop } = await serve((request, response) => {
      if (request.url?.endsWith('/key-pairs')) pairs.push(response);
    }, 2_000);
    const head = { privateKey: masterKey('pair'), publicKey: null };
    const pair = door
      .call({ route: 'generateKeyPair', handle: null, head, raw: null }, caller())
      .catch((error: { code: string }) => error.code);
    await vi.waitFor(() => expect(pairs).toHaveLength(1), { timeout: 300_000 });
    expect(await call()).toMatchObject({ code: 'dependency-timeout' });
    pairs[0]?.writeHead(409, { 'content-type': 'application/problem+json' }).end('{"code":"label-exists"}');
    expect(await pair).toBe('label-exists');
    await stop();
  });
  test('a call whose time is over before its turn in the agent is not sent', async () => {
    let requests = 0;
    const { door, stop } = await serve(() => {
      requests += 1;
    });
    // Its time is used up, or it has waited for longer than it had.
    for (const waitedMs of [59_750, 60_000, 3_600_000])
      for (const route of ['info', 'destroyObject'] as const)
        await expect(
          door.call({ route, handle: null, head: {}, raw: null }, { ...caller(), waitedMs }),
        ).rejects.toMatchObject({ code: 'dependency-timeout' });
    await stop();
    expect(requests).toBe(0);
  });
  test('no server there is unavailable', async () => {
    const door = openHttpService(config('http://127.0.0.1:9'));
    await expect(door.call({ route: 'info', handle: null, head: {}, raw: null }, caller())).rejects.toMatchObject({
      code: 'unavailable',
    });
    await door.close();
  });
  test.each<[string, number, string, string, string]>([
    ['a page of a proxy', 502, 'text/html', '<html>', 'unavailable'],
    ['a missing page of a proxy', 404, 'text/html', '<html>', 'unavailable'],
    ['a refusal of a proxy', 403, 'application/json', '{}', 'unavailable'],
    ['a success that is not an envelope', 200, 'text/html', '<html>', 'internal'],
    ['a broken envelope', 200, 'application/vnd.dke.envelope', '\xff\xff\xff\xff', 'internal'],
    ['an unknown code', 403, 'application/problem+json', '{"code":"new-one"}', 'forbidden'],
    ['a known code', 409, 'application/problem+json', '{"code":"label-exists"}', 'label-exists'],
  ])('%s', async (_name, status, type, body, code) => {
    const { call, stop } = await serve((_request, response) => {
      response.writeHead(status, { 'content-type': type }).end(Buffer.from(body, 'latin1'));
    });
    expect(await call()).toMatchObject({ code });
    await stop();
  });
  test('a kept connection that was closed is opened again, once, and only for what may be asked twice', async () => {
    let requests = 0;
    const { call, stop } = await serve((request, response) => {
      requests++;
      if (requests % 2 === 0) request.socket.destroy();
      else response.writeHead(409).end('{"code":"conflict"}');
    });
    expect(await call()).toMatchObject({ code: 'conflict' });
    expect(await call()).toMatchObject({ code: 'conflict' });
    expect(requests).toBe(3);
    await stop();
  });
  test('a call that has ended leaves nothing behind that would wake the agent again', async () => {
    const timers = new Set<number>();
    const hook = createHook({
      init: (id, type) => {
        if (type === 'Timeout') timers.add(id);
      },
      destroy: (id) => timers.delete(id),
    });
    const { call, stop } = await serve((_request, response) => {
      response.writeHead(409, { 'content-type': 'application/problem+json' }).end('{"code":"conflict"}');
    });
    // The pool has timers of its own, as many for one call as for many.
    await call();
    hook.enable();
    for (let at = 0; at < 20; at += 1) expect(await call()).toMatchObject({ code: 'conflict' });
    // All cleared ones are released by then; the garbage collector would release the others only
    // later.
    for (let turn = 0; turn < 10; turn += 1) await setImmediate();
    hook.disable();
    expect(timers.size).toBeLessThan(10);
    await stop();
  });
  test('no message contains the credential', async () => {
    const { call, stop } = await serve((request) => request.socket.destroy());
    expect(JSON.stringify(await call())).not.toContain(guid);
    await stop();
  });
});
