// The lines of a debug trace: what they tell of a call, and what they never do.
import { expect, test } from 'vitest';
import { callText, callWitness } from '../../../provider/agent/threads/call-trace.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { type CallName, calls } from '../../../provider/schema/calls.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import { LengthOnly } from '../../../provider/schema/types.ts';
import { startInProcess } from '../../support/in-process-agent.ts';
import { mech } from '../../support/session-calls.ts';
import { template } from '../../support/template.ts';

const canary = Buffer.from('canary-of-bytes');

test('a line has names, flags, numbers and lengths', () => {
  const rows = template([CKA.LABEL, canary], [CKA.DECRYPT, true], [CKA.VALUE_LEN, 32], [CKA.VALUE, canary]);
  expect(callText('C_GenerateKey', { session: 3, mechanism: mech(CKM.AES_KEY_GEN), template: rows })).toBe(
    'session 3, mechanism AES_KEY_GEN, template [LABEL 15 bytes, DECRYPT true, VALUE_LEN 32, VALUE 15 bytes]',
  );
  const cbc = mech(CKM.AES_CBC, { kind: 'bytes', bytes: canary });
  expect(callText('C_EncryptInit', { session: 3, mechanism: cbc, key: 7 })).toBe(
    'session 3, mechanism AES_CBC (bytes 15 bytes), key 7',
  );
  expect(callText('C_EncryptInit', { session: 3, mechanism: null, key: 7 })).toContain('mechanism none');
  const queries = [
    { type: CKA.LABEL, capacity: null },
    { type: CKA.VALUE_LEN, capacity: 8 },
  ];
  expect(callText('C_GetAttributeValue', { session: 3, object: 7, template: queries })).toBe(
    'session 3, object 7, template [LABEL length, VALUE_LEN room 8]',
  );
});

test('no call tells bytes, and none the length of a PIN', () => {
  const samples: Readonly<Record<string, unknown>> = {
    ulong: 5,
    flag: true,
    list: 5,
    batch: 5,
    template: template([CKA.VALUE, canary], [CKA.ID, canary]),
    query: [{ type: CKA.VALUE, capacity: 5 }],
    mechanism: mech(CKM.AES_GCM, { kind: 'gcm', iv: canary, ivBits: 96, aad: canary, tagBits: 128 }),
    messageMechanism: null,
    out: { capacity: 5, space: canary },
    fill: { capacity: 5, space: canary },
    seal: { kind: 'gcm', iv: canary },
    open: { kind: 'gcm', tag: canary },
  };
  const sampleOf = (kind: string): unknown => (Object.hasOwn(samples, kind) ? samples[kind] : canary);
  for (const [name, { args }] of Object.entries(calls) as [CallName, (typeof calls)[CallName]][]) {
    const text = callText(name, Object.fromEntries(args.map((arg) => [arg.name, sampleOf(arg.kind)])));
    expect(text, name).not.toMatch(/canary|63616e617279|[=:]/);
    expect(text, name).not.toMatch(/\bpin\b/i);
  }
  expect(callText('C_Encrypt', { session: 1, data: new LengthOnly(99), encryptedData: { capacity: null } })).toBe(
    'session 1, data 99 bytes, encryptedData length',
  );
});

test('a line is bounded, and so are the lines of a second', async () => {
  const rows = Array.from({ length: 5000 }, () => ({ type: 0xffffffff, value: 2 ** 53, length: 8 }));
  expect(callText('C_CreateObject', { session: 1, template: rows }).length).toBeLessThan(4096);
  const { connection } = await startInProcess();
  let lines = 0;
  const traced = Object.assign(Object.create(connection), { log: () => (lines += 1) });
  Object.defineProperty(traced, 'isTraced', { value: true });
  const call = { name: 'C_GetTokenInfo', request: Buffer.alloc(0), reply: Buffer.alloc(0) } as const;
  Object.defineProperty(traced, 'account', { value: connection.account });
  const began = performance.now();
  for (let at = 0; at < 40_000; at++) callWitness.before(traced, call, { slot: 1 });
  // Each second that has begun allows 10,000 calls, and one line that counts the omitted ones.
  expect(lines).toBeLessThanOrEqual(10_001 * (Math.ceil((performance.now() - began) / 1000) + 1));
});
