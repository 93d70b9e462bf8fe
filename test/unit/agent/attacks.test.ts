// The known attacks on the key management of PKCS#11, by the names that the literature gives them,
// each against keys of the session and keys of the token (the real service answers). Clulow, "On
// the Security of PKCS#11", CHES 2003; Delaune, Kremer, Steel, "Formal Analysis of PKCS#11", CSF
// 2008; Bortolozzo, Centenaro, Focardi, Steel, "Attacking and Fixing PKCS#11 Security Tokens"
// (Tookan), CCS 2010; Bardou and others, "Efficient Padding Oracle Attacks", CRYPTO 2012.
//
// What is to be taken is always sensitive. Where the attacker needs it wrapped it is extractable as
// well, which a key is only when its owner asks for that.
import { createCipheriv } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKK } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { Mechanism } from '../../../provider/schema/types.ts';
import { room, rvOf } from '../../support/in-process-agent.ts';
import {
  aesRows,
  cbcPad,
  clear,
  extractable,
  iv,
  keyWrap,
  mech,
  noDecrypt,
  oaepWith,
  type Row,
  startSession,
} from '../../support/session-calls.ts';
import { places } from '../../support/template.ts';

const ecb = mech(CKM.AES_ECB);
const cbc = mech(CKM.AES_CBC, { kind: 'bytes', bytes: iv });
const keyWrapPad = mech(CKM.AES_KEY_WRAP_KWP);
const gcm = mech(CKM.AES_GCM);
const oaep = oaepWith(Buffer.alloc(0));
const known = Buffer.from(Array.from({ length: 32 }, (_, i) => 255 - i));
/**
 * 2.40, section 6: mechanisms that derive keys from parts of others, or from others and known data.
 */
const combining = { CONCATENATE_BASE_AND_KEY: 0x360, XOR_BASE_AND_DATA: 0x364, EXTRACT_KEY_FROM_KEY: 0x365 } as const;

/** Refused, with any of the call's error codes for it. */
const refusals = [
  'CKR_KEY_NOT_WRAPPABLE',
  'CKR_KEY_UNEXTRACTABLE',
  'CKR_KEY_FUNCTION_NOT_PERMITTED',
  'CKR_ACTION_PROHIBITED',
  'CKR_ATTRIBUTE_READ_ONLY',
  'CKR_TEMPLATE_INCONSISTENT',
  'CKR_TEMPLATE_INCOMPLETE',
  'CKR_MECHANISM_INVALID',
  'CKR_WRAPPED_KEY_INVALID',
  'CKR_WRAPPED_KEY_LEN_RANGE',
  'CKR_KEY_INDIGESTIBLE',
];

const start = async (token: boolean) => {
  const call = await startSession();
  const { agent, session } = call;
  let labels = 0;
  /** On the token a label names one key. */
  const placed = (rows: readonly Row[]): readonly Row[] => [
    [CKA.TOKEN, token],
    [CKA.LABEL, Buffer.from(`key ${labels++}`)],
    ...rows,
  ];
  return {
    ...call,
    generate: (...rows: readonly Row[]) =>
      agent.generate(session, CKM.AES_KEY_GEN, [CKA.VALUE_LEN, 32], ...placed(rows)),
    bring: (...rows: readonly Row[]) => agent.create(session, ...aesRows, [CKA.VALUE, known], ...placed(rows)),
    pair: (...rows: readonly Row[]) =>
      agent.pair(session, CKM.RSA_PKCS_KEY_PAIR_GEN, [[CKA.MODULUS_BITS, 2048], ...placed([])], [...placed(rows)]),
    unwrap: (mechanism: Mechanism, unwrappingKey: number, wrappedKey: Uint8Array, ...rows: readonly Row[]) =>
      agent.unwrap(session, mechanism, unwrappingKey, wrappedKey, ...aesRows, ...placed(rows)),
    decryptInit: (mechanism: Mechanism, key: number) => agent.rv('C_DecryptInit', { session, mechanism, key }),
  };
};
const refused = async (call: Promise<unknown>, how?: string): Promise<void> => {
  const rv = await rvOf(call);
  if (how === undefined) expect(refusals).toContain(rv);
  else expect(rv).toBe(how);
};

describe.each(places)('keys of the %s', (_where, token) => {
  test('wrap and decrypt, with one key (Clulow 2.3; Tookan A1)', async () => {
    const { generate, wrap } = await start(token);
    const both = await generate([CKA.WRAP, true], [CKA.DECRYPT, true]);
    for (const mechanism of [keyWrap, keyWrapPad, cbc, cbcPad])
      await refused(wrap(mechanism, both, await generate(extractable)), 'CKR_KEY_NOT_WRAPPABLE');
  });

  test('wrap and decrypt, one after the other, by setting attributes (Delaune 2.2)', async () => {
    const { agent, session, generate, wrap, set, decryptInit } = await start(token);
    const wrapping = await generate(noDecrypt);
    await wrap(keyWrap, wrapping, await generate(extractable));
    // To be refused already here, or at the use at the latest.
    await set(wrapping, [CKA.DECRYPT, true]).catch(() => undefined);
    for (const mechanism of [ecb, cbc])
      expect(await decryptInit(mechanism, wrapping)).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
    expect(await agent.rv('C_MessageDecryptInit', { session, mechanism: gcm, key: wrapping })).toBe(
      'CKR_KEY_FUNCTION_NOT_PERMITTED',
    );
  });

  test('decrypt and then wrap, by setting attributes: what runs already counts', async () => {
    const { agent, session, generate, wrap, set, decryptInit } = await start(token);
    const key = await generate([CKA.DECRYPT, true]);
    expect(await decryptInit(ecb, key)).toBe('CKR_OK');
    await set(key, noDecrypt);
    const other = await generate(extractable);
    const wrapped = await wrap(keyWrap, key, other).catch((error: Error) => error.message);
    if (typeof wrapped === 'string') {
      expect(wrapped).toBe('CKR_KEY_NOT_WRAPPABLE');
      return;
    }
    // A token key decrypts in the service, which checks the permission at that moment.
    const call = { session, encryptedData: wrapped.subarray(0, 32), data: room(32) };
    expect(await agent.rv('C_Decrypt', call)).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
  });

  test('wrap and decrypt, with a copy of the wrapping key (Tookan A2)', async () => {
    const { generate, copy, wrap, decryptInit } = await start(token);
    const wrapping = await generate(noDecrypt);
    await wrap(keyWrap, wrapping, await generate(extractable));
    const twin = await copy(wrapping, [CKA.LABEL, Buffer.from('twin')], [CKA.DECRYPT, true]).catch(() => null);
    if (twin !== null) expect(await decryptInit(ecb, twin)).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
  });

  test('the same wrapped key imported twice, to wrap and to decrypt (Clulow 2.4; Delaune, re-import 1)', async () => {
    const { generate, wrap, unwrap, decryptInit } = await start(token);
    const outer = await generate(noDecrypt);
    const inner = await wrap(keyWrap, outer, await generate(extractable, noDecrypt));
    const wrapping = await unwrap(keyWrap, outer, inner, noDecrypt, [CKA.WRAP, true]);
    const decrypting = await unwrap(keyWrap, outer, inner, [CKA.DECRYPT, true], [CKA.WRAP, false]);
    const wrapped = await wrap(keyWrap, wrapping, await generate(extractable)).catch((error: Error) => error.message);
    if (typeof wrapped === 'string') expect(wrapped).toBe('CKR_KEY_NOT_WRAPPABLE');
    else expect(await decryptInit(ecb, decrypting)).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
  });

  test('unwrapping what was wrapped into something that may be read (Delaune, re-import 2)', async () => {
    const { generate, wrap, unwrap } = await start(token);
    const wrapping = await generate(noDecrypt);
    const wrapped = await wrap(keyWrap, wrapping, await generate(extractable));
    await refused(unwrap(keyWrap, wrapping, wrapped, ...clear));
    await refused(unwrap(keyWrap, wrapping, wrapped, [CKA.SENSITIVE, false]));
    // Unwrapped as a key of another type, the value could be read by using that key.
    const generic: readonly Row[] = [[CKA.KEY_TYPE, CKK.GENERIC_SECRET], ...clear];
    await refused(unwrap(keyWrap, wrapping, wrapped, ...generic));
  });

  test('a known key, encrypted and unwrapped, wraps nothing sensitive of its owner’s (Tookan A3)', async () => {
    const { generate, encrypt, unwrap, wrap } = await start(token);
    const transport = await generate([CKA.ENCRYPT, true], [CKA.UNWRAP, true]);
    const planted = await unwrap(cbc, transport, await encrypt(cbc, transport, known), noDecrypt).catch(() => null);
    if (planted === null) return;
    // Not without the owner's leave, which a key has by CKA_EXTRACTABLE only.
    await refused(wrap(keyWrap, planted, await generate()), 'CKR_KEY_UNEXTRACTABLE');
    await refused(
      wrap(keyWrap, planted, await generate(extractable, [CKA.WRAP_WITH_TRUSTED, true])),
      'CKR_KEY_NOT_WRAPPABLE',
    );
    if (token) await refused(wrap(keyWrap, planted, await generate(extractable)), 'CKR_KEY_NOT_WRAPPABLE');
  });

  test('a known key, brought along, wraps nothing sensitive of its owner’s (Clulow 2.5)', async () => {
    const { generate, bring, wrap } = await start(token);
    const brought = await bring([CKA.WRAP, true], noDecrypt);
    await refused(wrap(keyWrap, brought, await generate()), 'CKR_KEY_UNEXTRACTABLE');
    await refused(
      wrap(keyWrap, brought, await generate(extractable, [CKA.WRAP_WITH_TRUSTED, true])),
      'CKR_KEY_NOT_WRAPPABLE',
    );
    if (token) await refused(wrap(keyWrap, brought, await generate(extractable)), 'CKR_KEY_NOT_WRAPPABLE');
  });

  test('no one makes a wrapping key a trusted one', async () => {
    const { generate, bring, copy, set } = await start(token);
    const trusted: Row = [CKA.TRUSTED, true];
    await refused(generate(trusted));
    await refused(bring(trusted));
    const key = await generate();
    await refused(set(key, trusted));
    await refused(copy(key, [CKA.LABEL, Buffer.from('twin')], trusted));
  });

  test('attributes do not get weaker: by C_SetAttributeValue', async () => {
    const { generate, set, read } = await start(token);
    const wanted = [{ type: CKA.SENSITIVE, value: true, length: 1 }];
    const key = await generate(
      [CKA.WRAP_WITH_TRUSTED, true],
      [CKA.WRAP_TEMPLATE, wanted],
      [CKA.UNWRAP_TEMPLATE, wanted],
      [CKA.ALLOWED_MECHANISMS, [CKM.AES_KEY_WRAP]],
    );
    const weaker: readonly Row[] = [
      [CKA.SENSITIVE, false],
      extractable,
      [CKA.ALWAYS_SENSITIVE, false],
      [CKA.NEVER_EXTRACTABLE, false],
      [CKA.LOCAL, false],
      [CKA.KEY_GEN_MECHANISM, CKM.GENERIC_SECRET_KEY_GEN],
      [CKA.WRAP_WITH_TRUSTED, false],
      [CKA.WRAP_TEMPLATE, []],
      [CKA.UNWRAP_TEMPLATE, []],
      [CKA.ALLOWED_MECHANISMS, []],
      [CKA.VALUE, known],
      [CKA.CHECK_VALUE, Buffer.alloc(3)],
    ];
    for (const row of weaker) await refused(set(key, row));
    expect(await read(key, CKA.SENSITIVE, CKA.EXTRACTABLE, CKA.WRAP_WITH_TRUSTED)).toEqual([true, false, true]);
  });

  test('attributes do not get weaker: by C_CopyObject', async () => {
    const { generate, copy } = await start(token);
    const key = await generate([CKA.WRAP_WITH_TRUSTED, true]);
    const weaker: readonly Row[] = [
      [CKA.SENSITIVE, false],
      extractable,
      [CKA.ALWAYS_SENSITIVE, false],
      [CKA.NEVER_EXTRACTABLE, false],
      [CKA.WRAP_WITH_TRUSTED, false],
    ];
    for (const row of weaker) await refused(copy(key, [CKA.LABEL, Buffer.from('twin')], row));
    if (token) await refused(copy(key, [CKA.TOKEN, false]), 'CKR_ACTION_PROHIBITED');
    await refused(
      copy(await generate([CKA.COPYABLE, false]), [CKA.LABEL, Buffer.from('twin')]),
      'CKR_ACTION_PROHIBITED',
    );
  });

  test('what is computed cannot be claimed', async () => {
    const { generate, bring, wrap, unwrap, read } = await start(token);
    for (const type of [CKA.ALWAYS_SENSITIVE, CKA.NEVER_EXTRACTABLE, CKA.LOCAL]) {
      await refused(generate([type, true]));
      await refused(bring([type, true]));
    }
    const wrapping = await generate(noDecrypt);
    const wrapped = await wrap(keyWrap, wrapping, await generate(extractable));
    const computed = [CKA.ALWAYS_SENSITIVE, CKA.NEVER_EXTRACTABLE, CKA.LOCAL] as const;
    expect(await read(await unwrap(keyWrap, wrapping, wrapped), ...computed)).toEqual([false, false, false]);
    expect(await read(await bring(), ...computed)).toEqual([false, false, false]);
    expect(await read(await generate(), ...computed)).toEqual([true, true, true]);
  });

  test('the value of a sensitive or unextractable key is not returned; the other attributes are', async () => {
    const { agent, session, generate } = await start(token);
    for (const rows of [[], [extractable], [[CKA.SENSITIVE, false] as const]]) {
      const object = await generate(...rows);
      const asked = [CKA.VALUE, CKA.VALUE_LEN].map((type) => ({ type, capacity: 64 }));
      expect(await agent.rv('C_GetAttributeValue', { session, object, template: asked })).toBe(
        'CKR_ATTRIBUTE_SENSITIVE',
      );
      const { values } = await agent.call('C_GetAttributeValue', { session, object, template: asked });
      expect(values[0]).not.toBeInstanceOf(Uint8Array);
      expect(values[1]).toBe(32);
    }
  });

  test('a sensitive key is not wrapped under a mode without integrity (Clulow 3; key conjuring)', async () => {
    const { generate, wrap } = await start(token);
    const wrapping = await generate(noDecrypt);
    for (const mechanism of [cbc, cbcPad])
      await refused(wrap(mechanism, wrapping, await generate(extractable)), 'CKR_KEY_NOT_WRAPPABLE');
    await refused(wrap(ecb, wrapping, await generate(extractable)), 'CKR_MECHANISM_INVALID');
  });

  test('no key is conjured out of noise where what is wrapped is sensitive', async () => {
    const { generate, wrap, unwrap } = await start(token);
    const wrapping = await generate(noDecrypt);
    const wrapped = await wrap(keyWrap, wrapping, await generate(extractable));
    const noise = Buffer.alloc(40, 0x5a);
    for (const bytes of [noise, noise.subarray(0, 24)]) await refused(unwrap(keyWrap, wrapping, bytes));
    for (let bit = 0; bit < wrapped.length * 8; bit += 37) {
      const changed = Buffer.from(wrapped);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      await refused(unwrap(keyWrap, wrapping, changed), 'CKR_WRAPPED_KEY_INVALID');
    }
  });

  test('the wrapping key is not an oracle for paddings (Bardou 2012)', async () => {
    const { generate, wrap, unwrap } = await start(token);
    const wrapping = await generate(noDecrypt);
    const wrapped = await wrap(keyWrap, wrapping, await generate(extractable));
    for (const mechanism of [cbc, cbcPad]) {
      const answers = [wrapped.subarray(0, 32), wrapped.subarray(8, 40), Buffer.alloc(32)].map((bytes) =>
        unwrap(mechanism, wrapping, bytes).then(
          () => 'CKR_OK',
          (error: Error) => error.message,
        ),
      );
      expect(new Set(await Promise.all(answers))).toEqual(new Set(['CKR_KEY_FUNCTION_NOT_PERMITTED']));
    }
  });

  test('RSA with PKCS#1 v1.5 padding, or none, neither decrypts nor unwraps (Bleichenbacher; Bardou 2012)', async () => {
    const { pair, unwrap, wrap, generate, decryptInit } = await start(token);
    const { publicKey, privateKey } = await pair();
    const raw = mech(0x3);
    for (const mechanism of [mech(CKM.RSA_PKCS), raw]) {
      expect(await decryptInit(mechanism, privateKey)).toBe('CKR_MECHANISM_INVALID');
      await refused(unwrap(mechanism, privateKey, Buffer.alloc(256)), 'CKR_MECHANISM_INVALID');
      await refused(wrap(mechanism, publicKey, await generate(extractable)), 'CKR_MECHANISM_INVALID');
    }
  });

  test('wrap with one half of a pair, decrypt with the other', async () => {
    const { pair, generate, wrap, set, decryptInit, unwrap } = await start(token);
    const both = await pair([CKA.DECRYPT, true]);
    await refused(wrap(oaep, both.publicKey, await generate(extractable)), 'CKR_KEY_NOT_WRAPPABLE');
    const one = await pair(noDecrypt);
    const wrapped = await wrap(oaep, one.publicKey, await generate(extractable));
    await set(one.privateKey, [CKA.DECRYPT, true]).catch(() => undefined);
    expect(await decryptInit(oaep, one.privateKey)).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
    await refused(unwrap(oaep, one.privateKey, wrapped, ...clear));
  });

  test('encryption as a derivation gives nothing of a sensitive key (CKM_AES_ECB_ENCRYPT_DATA, CKM_AES_CBC_ENCRYPT_DATA)', async () => {
    const { generate, derive } = await start(token);
    const base = await generate([CKA.DERIVE, true]);
    const data = Buffer.alloc(32);
    const ways = [
      mech(CKM.AES_ECB_ENCRYPT_DATA, { kind: 'data', data }),
      mech(CKM.AES_CBC_ENCRYPT_DATA, { kind: 'ivdata', iv, data }),
    ];
    for (const mechanism of ways)
      await refused(derive(mechanism, base, ...aesRows, ...clear), 'CKR_KEY_FUNCTION_NOT_PERMITTED');
  });

  test('no key is taken apart, or put together with something known (Clulow 2.6: parallel search)', async () => {
    const { generate, derive } = await start(token);
    const base = await generate([CKA.DERIVE, true]);
    for (const type of Object.values(combining))
      await refused(derive(mech(type), base, ...aesRows, ...clear), 'CKR_MECHANISM_INVALID');
    // Nor shortened on its way in: a part is searched sooner than the whole.
    const wrapping = await start(token);
    const outer = await wrapping.generate(noDecrypt);
    const wrapped = await wrapping.wrap(keyWrap, outer, await wrapping.generate(extractable));
    await refused(wrapping.unwrap(keyWrap, outer, wrapped.subarray(0, 24)));
    await refused(wrapping.unwrap(keyWrap, outer, wrapped, [CKA.VALUE_LEN, 16]));
  });

  test('a key’s digest, which would allow testing guesses, is not returned', async () => {
    const { agent, session, generate } = await start(token);
    await agent.call('C_DigestInit', { session, mechanism: mech(CKM.SHA256) });
    expect(await agent.rv('C_DigestKey', { session, key: await generate() })).toBe('CKR_KEY_INDIGESTIBLE');
    // A handle without a key is refused as such.
    for (const key of [0, 999_999, 2 ** 31 + 999]) {
      await agent.call('C_DigestInit', { session, mechanism: mech(CKM.SHA256) });
      expect(await agent.rv('C_DigestKey', { session, key })).toBe('CKR_KEY_HANDLE_INVALID');
    }
  });

  test('a wrapping key asks, by its templates, for what it wraps and what it opens', async () => {
    const { generate, wrap, unwrap } = await start(token);
    const wanted = [{ type: CKA.SENSITIVE, value: true, length: 1 }];
    const wrapping = await generate(noDecrypt, [CKA.UNWRAP_TEMPLATE, wanted], [CKA.WRAP_TEMPLATE, wanted]);
    const wrapped = await wrap(keyWrap, wrapping, await generate(extractable));
    await refused(unwrap(keyWrap, wrapping, wrapped, [CKA.SENSITIVE, false]), 'CKR_TEMPLATE_INCONSISTENT');
  });

  test('what is known of the cipher is what everybody knows', async () => {
    // The tests above assume that `encrypt` is the named cipher: an imported key has a known value.
    const { bring, encrypt } = await start(token);
    const cipher = createCipheriv('aes-256-cbc', known, iv).setAutoPadding(false);
    const expected = Buffer.concat([cipher.update(known), cipher.final()]);
    expect(await encrypt(cbc, await bring(), known)).toEqual(expected);
  });
});
