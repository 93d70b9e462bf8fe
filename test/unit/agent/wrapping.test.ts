// Keys under keys and from keys: PKCS#11 2.40, section 5.14, and the attacks of Clulow (2003) and
// Tookan (2010) on it.
import { createDecipheriv, createECDH, createHash, hkdfSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKD, CKK, CKO, HKDF_SALT } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { Mechanism, MechanismParameter } from '../../../provider/schema/types.ts';
import { given, type InProcessAgent, room, rvOf } from '../../support/in-process-agent.ts';
import {
  aesRows,
  cbcPad,
  clear,
  extractable,
  hkdfWith,
  iv,
  keyWrap,
  mech,
  noDecrypt,
  oaepWith,
  p256,
  type Row,
  salted,
  secret,
  startSession,
} from '../../support/session-calls.ts';
import { template } from '../../support/template.ts';

const cbc = mech(CKM.AES_CBC, { kind: 'bytes', bytes: iv });
const oaep = oaepWith(Buffer.alloc(0));

describe('wrapping', () => {
  test.each<[string, Mechanism]>([
    ['AES_KEY_WRAP', keyWrap],
    ['AES_KEY_WRAP_PAD', mech(CKM.AES_KEY_WRAP_PAD)],
    ['AES_KEY_WRAP_KWP', mech(CKM.AES_KEY_WRAP_KWP)],
    ['AES_CBC', cbc],
    ['AES_CBC_PAD', cbcPad],
  ])('%s gives a key back', async (_name, mechanism) => {
    const { generate, create, wrap, unwrap, value, read } = await startSession();
    const wrapping = await generate(noDecrypt);
    const wrapped = await wrap(mechanism, wrapping, await create(...aesRows, [CKA.VALUE, secret], ...clear));
    const back = await unwrap(mechanism, wrapping, wrapped, ...aesRows, ...clear);
    expect(await value(back)).toEqual(secret);
    const computed = [CKA.LOCAL, CKA.ALWAYS_SENSITIVE, CKA.NEVER_EXTRACTABLE, CKA.VALUE_LEN];
    expect(await read(back, ...computed)).toEqual([false, false, false, 32]);
  });
  test('CBC_PAD wraps what any AES implementation unwraps', async () => {
    const { create, wrap } = await startSession();
    const kek = await create(...aesRows, [CKA.VALUE, secret]);
    const wrapped = await wrap(cbcPad, kek, await create(...aesRows, [CKA.VALUE, Buffer.alloc(24, 9)], ...clear));
    const node = createDecipheriv('aes-256-cbc', secret, iv);
    expect(Buffer.concat([node.update(wrapped), node.final()])).toEqual(Buffer.alloc(24, 9));
  });
  test('a private key travels as its PKCS#8', async () => {
    const { agent, session, generate, wrap, unwrap, read } = await startSession();
    const { privateKey } = (await agent.pair(session, CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256]], [extractable])) as {
      privateKey: number;
    };
    const wrapping = await generate(noDecrypt);
    const wrapped = await wrap(mech(CKM.AES_KEY_WRAP_KWP), wrapping, privateKey);
    const rows: Row[] = [
      [CKA.CLASS, CKO.PRIVATE_KEY],
      [CKA.KEY_TYPE, CKK.EC],
    ];
    const back = await unwrap(mech(CKM.AES_KEY_WRAP_KWP), wrapping, wrapped, ...rows);
    expect(await read(back, CKA.PUBLIC_KEY_INFO)).toEqual(await read(privateKey, CKA.PUBLIC_KEY_INFO));
    await expect(
      unwrap(mech(CKM.AES_KEY_WRAP_KWP), wrapping, wrapped, [CKA.CLASS, CKO.PRIVATE_KEY], [CKA.KEY_TYPE, CKK.RSA]),
    ).rejects.toThrow('CKR_WRAPPED_KEY_INVALID');
  });
  test('asking for the length, and too little room, wrap nothing', async () => {
    const { agent, session, generate } = await startSession();
    const [wrappingKey, key] = [await generate(noDecrypt), await generate(extractable)];
    for (const capacity of [null, 39]) {
      const wrappedKey = room(capacity);
      const asked = { session, mechanism: keyWrap, wrappingKey, key, wrappedKey };
      expect(given(wrappedKey, await agent.call('C_WrapKey', asked))).toBe(40);
    }
  });
  test('refusals are named as the standard names them', async () => {
    const { agent, session, generate, create, wrap, unwrap } = await startSession();
    const [wrapping, key] = [await generate(noDecrypt), await generate(extractable)];
    const generic = await create([CKA.CLASS, CKO.SECRET_KEY], [CKA.KEY_TYPE, CKK.GENERIC_SECRET], [CKA.VALUE, secret]);
    const refused = (work: Promise<unknown>, rv: string) => expect(work).rejects.toThrow(rv);
    await refused(wrap(keyWrap, 2 ** 31 + 999, key), 'CKR_WRAPPING_KEY_HANDLE_INVALID');
    await refused(wrap(keyWrap, generic, key), 'CKR_WRAPPING_KEY_TYPE_INCONSISTENT');
    await refused(wrap(keyWrap, await generate([CKA.WRAP, false]), key), 'CKR_KEY_FUNCTION_NOT_PERMITTED');
    await refused(wrap(keyWrap, wrapping, 2 ** 31 + 999), 'CKR_KEY_HANDLE_INVALID');
    // The number could be that of a token object, so the service is called.
    await refused(wrap(keyWrap, wrapping, 999_999), 'CKR_KEY_HANDLE_INVALID');
    await refused(wrap(keyWrap, 999_999, key), 'CKR_WRAPPING_KEY_HANDLE_INVALID');
    await refused(unwrap(keyWrap, 999_999, Buffer.alloc(40), ...aesRows), 'CKR_UNWRAPPING_KEY_HANDLE_INVALID');
    const onTheToken = await generate(noDecrypt, [CKA.TOKEN, true], [CKA.LABEL, Buffer.from('wrapping')]);
    await refused(wrap(keyWrap, onTheToken, 999_999), 'CKR_KEY_HANDLE_INVALID');
    await refused(wrap(keyWrap, onTheToken, 2 ** 31 + 999), 'CKR_KEY_HANDLE_INVALID');
    await refused(wrap(keyWrap, wrapping, await generate()), 'CKR_KEY_UNEXTRACTABLE');
    await refused(wrap(mech(CKM.AES_CTR), wrapping, key), 'CKR_MECHANISM_INVALID');
    await refused(
      wrap(keyWrap, wrapping, await generate(extractable, [CKA.WRAP_WITH_TRUSTED, true])),
      'CKR_KEY_NOT_WRAPPABLE',
    );
    const wrapped = await wrap(keyWrap, wrapping, key);
    await refused(unwrap(keyWrap, generic, wrapped, ...aesRows), 'CKR_UNWRAPPING_KEY_TYPE_INCONSISTENT');
    await refused(unwrap(keyWrap, 2 ** 31 + 999, wrapped, ...aesRows), 'CKR_UNWRAPPING_KEY_HANDLE_INVALID');
    await refused(unwrap(keyWrap, wrapping, wrapped.subarray(1), ...aesRows), 'CKR_WRAPPED_KEY_LEN_RANGE');
    wrapped[5] = (wrapped[5] ?? 0) ^ 1;
    await refused(unwrap(keyWrap, wrapping, wrapped, ...aesRows), 'CKR_WRAPPED_KEY_INVALID');
    await refused(unwrap(keyWrap, wrapping, wrapped), 'CKR_TEMPLATE_INCOMPLETE');
    const before = core.memoryStatus().keys;
    expect(await rvOf(agent.unwrap(session, keyWrap, wrapping, wrapped, ...aesRows))).toBe('CKR_WRAPPED_KEY_INVALID');
    expect(core.memoryStatus().keys).toBe(before);
  });
  test('the templates of a wrapping key are obeyed', async () => {
    const { generate, wrap, unwrap, read } = await startSession();
    const wanted = template([CKA.LABEL, Buffer.from('mine')]);
    const wrapping = await generate(noDecrypt, [CKA.WRAP_TEMPLATE, wanted], [CKA.UNWRAP_TEMPLATE, wanted]);
    await expect(wrap(keyWrap, wrapping, await generate(extractable))).rejects.toThrow('CKR_KEY_NOT_WRAPPABLE');
    const wrapped = await wrap(keyWrap, wrapping, await generate(extractable, [CKA.LABEL, Buffer.from('mine')]));
    const back = await unwrap(keyWrap, wrapping, wrapped, ...aesRows);
    expect(String(Buffer.from((await read(back, CKA.LABEL))[0] as Uint8Array))).toBe('mine');
    await expect(unwrap(keyWrap, wrapping, wrapped, ...aesRows, [CKA.LABEL, Buffer.from('yours')])).rejects.toThrow(
      'CKR_TEMPLATE_INCONSISTENT',
    );
  });
});

describe('a sensitive key does not come out', () => {
  const decryptInit = (mechanism: Mechanism, key: number) => ({ mechanism, key });
  test('by wrapping it under a key that decrypts', async () => {
    const { generate, wrap } = await startSession();
    await expect(wrap(keyWrap, await generate(), await generate(extractable))).rejects.toThrow('CKR_KEY_NOT_WRAPPABLE');
  });
  test('by allowing the wrapping key to decrypt afterwards', async () => {
    const { agent, session, generate, wrap, set } = await startSession();
    const wrapping = await generate(noDecrypt);
    await wrap(keyWrap, wrapping, await generate(extractable));
    await set(wrapping, [CKA.DECRYPT, true]);
    expect(await agent.rv('C_DecryptInit', { session, ...decryptInit(cbc, wrapping) })).toBe(
      'CKR_KEY_FUNCTION_NOT_PERMITTED',
    );
  });
  test('by a copy of the wrapping key that may decrypt', async () => {
    const { agent, session, generate, wrap } = await startSession();
    const decrypting = await generate([CKA.WRAP, false]);
    const wrapping = await agent.copy(session, decrypting, noDecrypt, [CKA.WRAP, true]);
    const key = await generate(extractable);
    await expect(wrap(keyWrap, wrapping, key)).rejects.toThrow('CKR_KEY_NOT_WRAPPABLE');
    // Nor if the object is destroyed while it decrypts.
    await agent.call('C_DecryptInit', { session, ...decryptInit(cbc, decrypting) });
    await agent.call('C_DestroyObject', { session, object: decrypting });
    await expect(wrap(keyWrap, wrapping, key)).rejects.toThrow('CKR_KEY_NOT_WRAPPABLE');
  });
  test('by unwrapping one key twice, to wrap and to decrypt', async () => {
    const { agent, session, generate, wrap, unwrap } = await startSession();
    const outer = await generate(noDecrypt);
    const inner = await wrap(keyWrap, outer, await generate(extractable, noDecrypt));
    const wrapping = await unwrap(keyWrap, outer, inner, ...aesRows, noDecrypt);
    await wrap(keyWrap, wrapping, await generate(extractable));
    const decrypting = await unwrap(keyWrap, outer, inner, ...aesRows, [CKA.WRAP, false]);
    expect(await agent.rv('C_DecryptInit', { session, ...decryptInit(cbc, decrypting) })).toBe(
      'CKR_KEY_FUNCTION_NOT_PERMITTED',
    );
  });
  test('by wrapping it under a cipher that lets changes pass', async () => {
    const { generate, wrap } = await startSession();
    const [wrapping, key] = [await generate(noDecrypt), await generate(extractable)];
    for (const mechanism of [cbc, cbcPad]) {
      await expect(wrap(mechanism, wrapping, key)).rejects.toThrow('CKR_KEY_NOT_WRAPPABLE');
    }
  });
  test('by asking the wrapping key whether a padding is right', async () => {
    const { generate, wrap, unwrap } = await startSession();
    const wrapping = await generate(noDecrypt);
    const wrapped = await wrap(keyWrap, wrapping, await generate(extractable));
    for (const mechanism of [cbc, cbcPad]) {
      await expect(unwrap(mechanism, wrapping, wrapped.subarray(0, 32), ...aesRows)).rejects.toThrow(
        'CKR_KEY_FUNCTION_NOT_PERMITTED',
      );
    }
  });
  test('by unwrapping it as one that may be read', async () => {
    const { generate, wrap, unwrap } = await startSession();
    const wrapping = await generate(noDecrypt);
    const wrapped = await wrap(keyWrap, wrapping, await generate(extractable));
    await expect(unwrap(keyWrap, wrapping, wrapped, ...aesRows, ...clear)).rejects.toThrow('CKR_TEMPLATE_INCONSISTENT');
  });
  test('by an RSA pair that wraps with one half and decrypts with the other', async () => {
    const { agent, session, generate, wrap, unwrap } = await startSession();
    const pair = (...rows: Row[]) => agent.pair(session, CKM.RSA_PKCS_KEY_PAIR_GEN, [[CKA.MODULUS_BITS, 2048]], rows);
    const key = await generate(extractable);
    const both = await pair();
    await expect(wrap(oaep, both.publicKey, key)).rejects.toThrow('CKR_KEY_NOT_WRAPPABLE');
    const one = await pair(noDecrypt);
    const wrapped = await wrap(oaep, one.publicKey, key);
    await unwrap(oaep, one.privateKey, wrapped, ...aesRows);
    await agent.call('C_SetAttributeValue', {
      session,
      object: one.privateKey,
      template: template([CKA.DECRYPT, true]),
    });
    expect(await agent.rv('C_DecryptInit', { session, ...decryptInit(oaep, one.privateKey) })).toBe(
      'CKR_KEY_FUNCTION_NOT_PERMITTED',
    );
  });
});

describe('derivation', () => {
  const pair = async ({ agent, session }: { agent: InProcessAgent; session: number }) => {
    const made = await agent.pair(session, CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256]], []);
    return made;
  };
  const generic: Row[] = [
    [CKA.CLASS, CKO.SECRET_KEY],
    [CKA.KEY_TYPE, CKK.GENERIC_SECRET],
  ];
  const ecdh = (publicData: Uint8Array, kdf: number = CKD.NULL, shared: Uint8Array = Buffer.alloc(0)) =>
    mech(CKM.ECDH1_DERIVE, { kind: 'ecdh1', kdf, shared, publicData });

  test('ECDH agrees with other implementations: complete, truncated and through its KDF', async () => {
    const host = await startSession();
    const { publicKey, privateKey } = await pair(host);
    const [wrapped] = await host.read(publicKey, CKA.EC_POINT);
    const other = createECDH('prime256v1');
    other.generateKeys();
    const shared = other.computeSecret(Buffer.from(wrapped as Uint8Array).subarray(2));
    const bare = other.getPublicKey();
    expect(await host.value(await host.derive(ecdh(bare), privateKey, ...generic, ...clear))).toEqual(shared);
    const inString = Buffer.concat([Buffer.of(4, 65), bare]);
    const cut = await host.derive(ecdh(inString), privateKey, ...aesRows, [CKA.VALUE_LEN, 16], ...clear);
    expect(await host.value(cut)).toEqual(shared.subarray(16));
    const info = Buffer.from('info');
    const through = await host.derive(ecdh(bare, CKD.SHA256_KDF, info), privateKey, ...generic, ...clear);
    const expected = createHash('sha256')
      .update(shared)
      .update(Buffer.of(0, 0, 0, 1))
      .update(info)
      .digest();
    expect(await host.value(through)).toEqual(expected);
  });
  test('with and without the cofactor, which is 1, ECDH is the same', async () => {
    const host = await startSession();
    const { privateKey } = await pair(host);
    const other = createECDH('prime256v1');
    const publicData = other.generateKeys();
    const parameter: MechanismParameter = { kind: 'ecdh1', kdf: CKD.NULL, shared: Buffer.alloc(0), publicData };
    const derived = await host.derive(mech(CKM.ECDH1_COFACTOR_DERIVE, parameter), privateKey, ...generic, ...clear);
    const plain = await host.derive(ecdh(publicData), privateKey, ...generic, ...clear);
    expect(await host.value(derived)).toEqual(await host.value(plain));
  });
  test('a point that is none is refused', async () => {
    const host = await startSession();
    const { privateKey } = await pair(host);
    for (const point of [Buffer.alloc(0), Buffer.alloc(65, 4), Buffer.alloc(33, 2)]) {
      await expect(host.derive(ecdh(point), privateKey, ...generic)).rejects.toThrow('CKR_MECHANISM_PARAM_INVALID');
    }
  });
  test('HKDF gives what others give, and the custody of its base', async () => {
    const { generate, create, derive, value, read } = await startSession();
    const base = await create(...generic, [CKA.VALUE, secret], [CKA.DERIVE, true]);
    const mechanism = hkdfWith(salted);
    const derived = await derive(mechanism, base, ...generic, [CKA.VALUE_LEN, 42], ...clear);
    expect(await value(derived)).toEqual(Buffer.from(hkdfSync('sha256', secret, 'salt', 'info', 42)));
    const kept = await derive(mechanism, base, ...aesRows, [CKA.VALUE_LEN, 32]);
    const custody = [CKA.SENSITIVE, CKA.ALWAYS_SENSITIVE, CKA.NEVER_EXTRACTABLE, CKA.LOCAL, CKA.KEY_GEN_MECHANISM];
    expect(await read(kept, ...custody)).toEqual([true, false, false, false, -1]);
    await expect(derive(mechanism, base, ...generic)).rejects.toThrow('CKR_TEMPLATE_INCOMPLETE');
    await expect(derive(mechanism, await generate([CKA.DERIVE, true]), ...generic)).rejects.toThrow(
      'CKR_KEY_TYPE_INCONSISTENT',
    );
  });
});

describe('HKDF of a base in the session', () => {
  const generic: Row[] = [
    [CKA.CLASS, CKO.SECRET_KEY],
    [CKA.KEY_TYPE, CKK.GENERIC_SECRET],
  ];
  const hkdf = (change: Parameters<typeof hkdfWith>[0] = {}, type: number = CKM.HKDF_DERIVE): Mechanism =>
    hkdfWith({ ...salted, ...change }, type);
  const expected = (salt: string, length: number) => Buffer.from(hkdfSync('sha256', secret, salt, 'info', length));
  const begin = async () => {
    const call = await startSession();
    const base = await call.create(...generic, [CKA.VALUE, secret], [CKA.DERIVE, true]);
    const key = (mechanism: Mechanism, ...rows: Row[]) =>
      call.derive(mechanism, base, ...generic, [CKA.VALUE_LEN, 42], ...clear, ...rows);
    return { ...call, base, key };
  };

  test('takes its salt as bytes, as a key and not at all', async () => {
    const { create, key, value } = await begin();
    expect(await value(await key(hkdf()))).toEqual(expected('salt', 42));
    expect(await value(await key(hkdf({ saltType: HKDF_SALT.NULL })))).toEqual(expected('', 42));
    const saltKey = await create(...generic, [CKA.VALUE, Buffer.from('salt')], [CKA.DERIVE, true]);
    expect(await value(await key(hkdf({ saltType: HKDF_SALT.KEY, saltKey })))).toEqual(expected('salt', 42));
  });

  test('refuses a salt that is not a key, that may not derive, that is on the token, or of no type', async () => {
    const { create, key } = await begin();
    const withKey = (saltKey: number) => key(hkdf({ saltType: HKDF_SALT.KEY, saltKey }));
    const idle = await create(...generic, [CKA.VALUE, secret]);
    await expect(withKey(idle + 1)).rejects.toThrow('CKR_KEY_HANDLE_INVALID');
    await expect(withKey(idle)).rejects.toThrow('CKR_KEY_FUNCTION_NOT_PERMITTED');
    const aes = await create(...aesRows, [CKA.VALUE, secret], [CKA.DERIVE, true]);
    await expect(withKey(aes)).rejects.toThrow('CKR_KEY_TYPE_INCONSISTENT');
    const away = await create(...generic, [CKA.VALUE, secret], [CKA.DERIVE, true], [CKA.TOKEN, true]);
    await expect(withKey(away)).rejects.toThrow('CKR_MECHANISM_PARAM_INVALID');
    for (const wrong of [{ saltType: 0 }, { saltType: 3 }, { hash: CKM.AES_CBC }, { extract: false, expand: false }]) {
      await expect(key(hkdf(wrong))).rejects.toThrow('CKR_MECHANISM_PARAM_INVALID');
    }
  });

  test('does one step alone, and looks only at what that step takes', async () => {
    const { base, derive, value, key, create } = await begin();
    const extract = hkdf({ expand: false });
    const middle = await derive(extract, base, ...generic, ...clear, [CKA.DERIVE, true]);
    const last = await derive(
      hkdf({ extract: false, saltType: 77 }),
      middle,
      ...generic,
      [CKA.VALUE_LEN, 42],
      ...clear,
    );
    expect(await value(last)).toEqual(expected('salt', 42));
    await expect(key(extract)).rejects.toThrow('CKR_KEY_SIZE_RANGE');
    expect(await create(...generic, [CKA.VALUE, await value(middle)])).toBeGreaterThan(0);
  });

  test.each([
    ['in the session', false],
    ['on the token', true],
  ])('CKM_HKDF_DATA makes an object of data, %s', async (_where, token) => {
    const { base, derive, value, read } = await begin();
    const mechanism = hkdf({}, CKM.HKDF_DATA);
    const made = await derive(mechanism, base, [CKA.CLASS, CKO.DATA], [CKA.VALUE_LEN, 42], [CKA.TOKEN, token]);
    expect(await value(made)).toEqual(expected('salt', 42));
    expect(await read(made, CKA.CLASS, CKA.TOKEN)).toEqual([CKO.DATA, token]);
    const digest = await derive(hkdf({ expand: false }, CKM.HKDF_DATA), base);
    expect(await value(digest)).toHaveLength(32);
  });

  test('data is not derived as a key, nor without a length, nor against what its base prescribes', async () => {
    const { create, base, derive } = await begin();
    const mechanism = hkdf({}, CKM.HKDF_DATA);
    const asKey = derive(mechanism, base, ...generic, [CKA.VALUE_LEN, 42]);
    await expect(asKey).rejects.toThrow('CKR_TEMPLATE_INCONSISTENT');
    const withValue = derive(mechanism, base, [CKA.VALUE_LEN, 3], [CKA.VALUE, Buffer.from('abc')]);
    await expect(withValue).rejects.toThrow('CKR_TEMPLATE_INCONSISTENT');
    await expect(derive(mechanism, base)).rejects.toThrow('CKR_TEMPLATE_INCOMPLETE');
    await expect(derive(mechanism, base, [CKA.VALUE_LEN, 1 << 20])).rejects.toThrow('CKR_KEY_SIZE_RANGE');
    const strict = await create(
      ...generic,
      [CKA.VALUE, secret],
      [CKA.DERIVE, true],
      [CKA.DERIVE_TEMPLATE, [{ type: CKA.SENSITIVE, value: true, length: 1 }]],
    );
    await expect(derive(mechanism, strict, [CKA.VALUE_LEN, 42])).rejects.toThrow('CKR_TEMPLATE_INCONSISTENT');
  });
});

describe.each([
  ['in the session', false],
  ['on the token', true],
] as const)('keys by encryption under a base %s', (_where, token) => {
  const generic: Row[] = [
    [CKA.CLASS, CKO.SECRET_KEY],
    [CKA.KEY_TYPE, CKK.GENERIC_SECRET],
  ];
  // NIST SP 800-38A, F.1.1 and F.2.1.
  const value = Buffer.from('2b7e151628aed2a6abf7158809cf4f3c', 'hex');
  const data = Buffer.from('6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51', 'hex');
  const iv = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex');
  const ways: readonly (readonly [string, Mechanism, string])[] = [
    [
      'AES_ECB_ENCRYPT_DATA',
      mech(CKM.AES_ECB_ENCRYPT_DATA, { kind: 'data', data }),
      '3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf',
    ],
    [
      'AES_CBC_ENCRYPT_DATA',
      mech(CKM.AES_CBC_ENCRYPT_DATA, { kind: 'ivdata', iv, data }),
      '7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2',
    ],
  ];
  const begin = async (...rows: Row[]) => {
    const call = await startSession();
    const base = await call.create(...aesRows, [CKA.VALUE, value], [CKA.DERIVE, true], [CKA.TOKEN, token], ...rows);
    return { ...call, base };
  };

  test.each(ways)('%s gives the published result, complete and truncated', async (_name, mechanism, result) => {
    const { base, derive, value: read } = await begin(...clear);
    const whole = await derive(mechanism, base, ...generic, ...clear);
    expect((await read(whole)).toString('hex')).toBe(result);
    const front = await derive(mechanism, base, ...aesRows, [CKA.VALUE_LEN, 24], ...clear);
    expect((await read(front)).toString('hex')).toBe(result.slice(0, 48));
    const kept = await derive(mechanism, base, ...aesRows, [CKA.TOKEN, token], ...clear);
    expect((await read(kept)).toString('hex')).toBe(result);
  });

  test.each(ways)('%s refuses a sensitive base', async (_name, mechanism) => {
    const { base, derive } = await begin();
    await expect(derive(mechanism, base, ...generic, ...clear)).rejects.toThrow('CKR_KEY_FUNCTION_NOT_PERMITTED');
    await expect(derive(mechanism, base, ...generic)).rejects.toThrow('CKR_KEY_FUNCTION_NOT_PERMITTED');
  });

  test.each(ways)(
    '%s refuses data that is too short, no whole blocks, or missing',
    async (_name, { type, parameter }) => {
      const { base, derive } = await begin(...clear);
      const of = (bytes: Uint8Array) => mech(type, { ...parameter, data: bytes } as MechanismParameter);
      const long: Row[] = [...generic, [CKA.VALUE_LEN, 17]];
      await expect(derive(of(data.subarray(0, 16)), base, ...long)).rejects.toThrow('CKR_DATA_LEN_RANGE');
      for (const wrong of [of(data.subarray(0, 17)), of(Buffer.alloc(0)), mech(type)]) {
        await expect(derive(wrong, base, ...generic)).rejects.toThrow('CKR_MECHANISM_PARAM_INVALID');
      }
    },
  );
});
