// Every curve that the token has, with keys of the session and of the token: pairs are generated,
// imported, wrapped and unwrapped, sign, verify and agree, each time against Node's own OpenSSL;
// and the published answers of RFC 7748, 8032 and 7027.
import {
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  type KeyObject,
  sign as signWithNode,
  verify as verifyWithNode,
} from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKD, CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { Mechanism } from '../../../provider/schema/types.ts';
import {
  clear,
  extractable,
  keyWrap,
  mech,
  noDecrypt,
  onToken,
  type Row,
  startSession,
} from '../../support/session-calls.ts';

interface Case {
  readonly name: string;
  readonly keyType: number;
  readonly generate: number;
  /** The object identifier of the curve in DER, hexadecimal. */
  readonly oid: string;
  /** The other name that CKA_EC_PARAMS may give the curve. */
  readonly text?: string;
  /** A new pair of Node's. */
  readonly node: () => { privateKey: KeyObject; publicKey: KeyObject };
}
const weierstrass = (name: string, oid: string): Case => ({
  name,
  keyType: CKK.EC,
  generate: CKM.EC_KEY_PAIR_GEN,
  oid,
  node: () => generateKeyPairSync('ec', { namedCurve: name }),
});
const cases: readonly Case[] = [
  weierstrass('secp224r1', '06052b81040021'),
  weierstrass('prime256v1', '06082a8648ce3d030107'),
  weierstrass('secp384r1', '06052b81040022'),
  weierstrass('secp521r1', '06052b81040023'),
  weierstrass('secp256k1', '06052b8104000a'),
  weierstrass('brainpoolP256r1', '06092b2403030208010107'),
  weierstrass('brainpoolP384r1', '06092b240303020801010b'),
  weierstrass('brainpoolP512r1', '06092b240303020801010d'),
  {
    name: 'ed25519',
    keyType: CKK.EC_EDWARDS,
    generate: CKM.EC_EDWARDS_KEY_PAIR_GEN,
    oid: '06032b6570',
    text: 'edwards25519',
    node: () => generateKeyPairSync('ed25519'),
  },
  {
    name: 'ed448',
    keyType: CKK.EC_EDWARDS,
    generate: CKM.EC_EDWARDS_KEY_PAIR_GEN,
    oid: '06032b6571',
    text: 'edwards448',
    node: () => generateKeyPairSync('ed448'),
  },
  {
    name: 'x25519',
    keyType: CKK.EC_MONTGOMERY,
    generate: CKM.EC_MONTGOMERY_KEY_PAIR_GEN,
    oid: '06032b656e',
    text: 'curve25519',
    node: () => generateKeyPairSync('x25519'),
  },
  {
    name: 'x448',
    keyType: CKK.EC_MONTGOMERY,
    generate: CKM.EC_MONTGOMERY_KEY_PAIR_GEN,
    oid: '06032b656f',
    text: 'curve448',
    node: () => generateKeyPairSync('x448'),
  },
];
const signs = ({ keyType }: Case): boolean => keyType !== CKK.EC_MONTGOMERY;
const agrees = ({ keyType }: Case): boolean => keyType !== CKK.EC_EDWARDS;

const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const printable = (text: string): Buffer => Buffer.concat([Buffer.of(0x13, text.length), Buffer.from(text)]);
const params = ({ oid }: Case): Row => [CKA.EC_PARAMS, hex(oid)];
const data = Buffer.from('what is signed');

/**
 * The numbers of one of Node's keys, as Cryptoki has them: the point bare, the value without
 * leading zeros added.
 */
const numbersOf = (key: KeyObject): { readonly point: Buffer; readonly value: Buffer } => {
  const jwk = key.export({ format: 'jwk' }) as { x: string; y?: string; d?: string };
  const part = (text = ''): Buffer => Buffer.from(text, 'base64url');
  const point = jwk.y === undefined ? part(jwk.x) : Buffer.concat([Buffer.of(4), part(jwk.x), part(jwk.y)]);
  return { point, value: part(jwk.d) };
};
/**
 * JWK does not have every curve: the last bytes of the SubjectPublicKeyInfo are the point, and
 * PKCS#8 has the value.
 */
const rawOf = (each: Case, pair: ReturnType<Case['node']>): { readonly point: Buffer; readonly value: Buffer } => {
  if (each.keyType !== CKK.EC) return numbersOf(pair.privateKey);
  const spki = pair.publicKey.export({ format: 'der', type: 'spki' });
  const at = spki.indexOf(Buffer.of(0x00, 0x04), spki.indexOf(hex(each.oid)) + each.oid.length / 2);
  const point = spki.subarray(at + 1);
  const sec1 = pair.privateKey.export({ format: 'der', type: 'sec1' });
  const octets = sec1.indexOf(Buffer.of(0x02, 0x01, 0x01, 0x04)) + 4;
  return { point, value: sec1.subarray(octets + 1, octets + 1 + (sec1[octets] ?? 0)) };
};
const octetString = (bytes: Buffer): Buffer =>
  Buffer.concat([bytes.length < 128 ? Buffer.of(4, bytes.length) : Buffer.of(4, 0x81, bytes.length), bytes]);

const signature = ({ keyType }: Case): Mechanism => mech(keyType === CKK.EC ? CKM.ECDSA_SHA256 : CKM.EDDSA);
const nodeKey = ({ keyType }: Case, key: KeyObject) =>
  keyType === CKK.EC ? ({ key, dsaEncoding: 'ieee-p1363' } as const) : key;
const digest = ({ keyType }: Case): string | null => (keyType === CKK.EC ? 'sha256' : null);
const agreement = (publicData: Uint8Array): Mechanism =>
  mech(CKM.ECDH1_DERIVE, { kind: 'ecdh1', kdf: CKD.NULL, shared: new Uint8Array(0), publicData });
const generic: Row[] = [[CKA.CLASS, CKO.SECRET_KEY], [CKA.KEY_TYPE, CKK.GENERIC_SECRET], ...clear];

describe.each([
  ['session', [CKA.TOKEN, false]],
  ['token', onToken],
] as const satisfies readonly (readonly [string, Row])[])('of the %s', (_place, place) => {
  let call: Awaited<ReturnType<typeof startSession>>;
  beforeAll(async () => {
    call = await startSession();
  });
  const imported = async (each: Case, pair: ReturnType<Case['node']>) => {
    const { point, value } = rawOf(each, pair);
    const common: Row[] = [[CKA.KEY_TYPE, each.keyType], params(each), place];
    return {
      publicKey: await call.create([CKA.CLASS, CKO.PUBLIC_KEY], ...common, [CKA.EC_POINT, octetString(point)]),
      privateKey: await call.create([CKA.CLASS, CKO.PRIVATE_KEY], ...common, [CKA.VALUE, value]),
    };
  };

  test.each(cases)('$name: a pair is generated, and says its curve', async (each) => {
    for (const name of [hex(each.oid), ...(each.text === undefined ? [] : [printable(each.text)])]) {
      const made = await call.pair(each.generate, [[CKA.EC_PARAMS, name], place], [place]);
      for (const key of [made.publicKey, made.privateKey]) expect(await call.bytes(key, CKA.EC_PARAMS)).toEqual(name);
      const node = await call.node(made.publicKey);
      expect(node.asymmetricKeyType).toBe(each.keyType === CKK.EC ? 'ec' : each.name);
      if (each.keyType === CKK.EC) expect(node.asymmetricKeyDetails?.namedCurve).toBe(each.name);
      expect(await call.read(made.privateKey, CKA.SIGN, CKA.DERIVE)).toEqual([signs(each), agrees(each)]);
    }
  });

  test.each(cases.filter(signs))('$name: signatures pass between the token and Node', async (each) => {
    const theirs = each.node();
    for (const pair of [await call.pair(each.generate, [params(each), place], [place]), await imported(each, theirs)]) {
      const made = await call.sign(signature(each), pair.privateKey, data);
      const node = await call.node(pair.publicKey);
      expect(verifyWithNode(digest(each), data, nodeKey(each, node), made)).toBe(true);
      expect(await call.verify(signature(each), pair.publicKey, data, made)).toBe('CKR_OK');
      made[3] = (made[3] ?? 0) ^ 1;
      expect(await call.verify(signature(each), pair.publicKey, data, made)).toBe('CKR_SIGNATURE_INVALID');
    }
    const { publicKey } = await imported(each, theirs);
    const made = signWithNode(digest(each), data, nodeKey(each, theirs.privateKey));
    expect(await call.verify(signature(each), publicKey, data, made)).toBe('CKR_OK');
  });

  test.each(cases.filter(agrees))('$name: the token and Node agree', async (each) => {
    const theirs = each.node();
    const { point } = rawOf(each, theirs);
    for (const pair of [
      await call.pair(each.generate, [params(each), place], [place]),
      await imported(each, each.node()),
    ]) {
      const expected = diffieHellman({
        privateKey: theirs.privateKey,
        publicKey: await call.node(pair.publicKey),
      });
      for (const publicData of [point, octetString(point)]) {
        const made = await call.derive(agreement(publicData), pair.privateKey, ...generic);
        expect(await call.value(made)).toEqual(expected);
      }
      const wrong = call.derive(agreement(point.subarray(1)), pair.privateKey, ...generic);
      await expect(wrong).rejects.toThrow('CKR_MECHANISM_PARAM_INVALID');
    }
  });

  test.each(cases)('$name: a private key is wrapped, and unwrapped to either place', async (each) => {
    const wrapping = await call.generate(noDecrypt, place);
    const { privateKey } = await call.pair(each.generate, [params(each)], [extractable, place]);
    const wrapped = await call.wrap(keyWrap, wrapping, privateKey);
    for (const to of [place, [CKA.TOKEN, false] as const]) {
      const rows: Row[] = [[CKA.CLASS, CKO.PRIVATE_KEY], [CKA.KEY_TYPE, each.keyType], to];
      const back = await call.unwrap(keyWrap, wrapping, wrapped, ...rows);
      expect(await call.read(back, CKA.PUBLIC_KEY_INFO)).toEqual(await call.read(privateKey, CKA.PUBLIC_KEY_INFO));
      expect(await call.bytes(back, CKA.EC_PARAMS)).toEqual(hex(each.oid));
    }
    const other = each.keyType === CKK.EC ? CKK.EC_EDWARDS : CKK.EC;
    const wrong = call.unwrap(keyWrap, wrapping, wrapped, [CKA.CLASS, CKO.PRIVATE_KEY], [CKA.KEY_TYPE, other], place);
    await expect(wrong).rejects.toThrow('CKR_WRAPPED_KEY_INVALID');
  });

  test.each(cases)('$name: a copy and a value that may be read are the same key', async (each) => {
    const theirs = each.node();
    const { value } = rawOf(each, theirs);
    const rows: Row[] = [[CKA.CLASS, CKO.PRIVATE_KEY], [CKA.KEY_TYPE, each.keyType], params(each), [CKA.VALUE, value]];
    const key = await call.create(...rows, place, ...clear);
    const read = await call.value(await call.copy(key, [CKA.TOKEN, false]));
    expect(Buffer.concat([Buffer.alloc(Math.max(0, read.length - value.length)), value])).toEqual(read);
  });

  test('the curve and the type of key go together', async () => {
    for (const each of cases) {
      for (const other of cases.filter(({ keyType }) => keyType !== each.keyType).slice(0, 2)) {
        const asked = call.pair(other.generate, [params(each), place], [place]);
        await expect(asked).rejects.toThrow('CKR_CURVE_NOT_SUPPORTED');
      }
    }
    // secp256r1 of another name: secp192r1 is not carried.
    const small = call.pair(CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, hex('06082a8648ce3d030101')], place], [place]);
    await expect(small).rejects.toThrow('CKR_CURVE_NOT_SUPPORTED');
  });

  test('Ed448 takes CK_EDDSA_PARAMS that ask for nothing else', async () => {
    const each = cases.find(({ name }) => name === 'ed448') as Case;
    const { publicKey, privateKey } = await call.pair(each.generate, [params(each), place], [place]);
    const pure = mech(CKM.EDDSA, { kind: 'eddsa', prehash: false, context: new Uint8Array(0) });
    expect(await call.sign(pure, privateKey, data)).toEqual(await call.sign(mech(CKM.EDDSA), privateKey, data));
    for (const parameter of [
      { kind: 'eddsa', prehash: true, context: new Uint8Array(0) },
      { kind: 'eddsa', prehash: false, context: Uint8Array.of(1) },
    ] as const) {
      const asked = { session: call.session, mechanism: mech(CKM.EDDSA, parameter), key: publicKey };
      expect(await call.agent.rv('C_VerifyInit', asked)).toBe('CKR_MECHANISM_PARAM_INVALID');
    }
  });

  test('X25519 and X448 refuse a point of small order', async () => {
    for (const [name, length] of [
      ['x25519', 32],
      ['x448', 56],
    ] as const) {
      const each = cases.find((one) => one.name === name) as Case;
      const { privateKey } = await call.pair(each.generate, [params(each), place], [place]);
      for (const point of [Buffer.alloc(length), Buffer.alloc(length).fill(1, 0, 1)]) {
        const asked = call.derive(agreement(point), privateKey, ...generic);
        await expect(asked).rejects.toThrow('CKR_MECHANISM_PARAM_INVALID');
      }
    }
  });

  test('a key that agrees does not sign, and a key that signs does not agree', async () => {
    const of = (name: string): Case => cases.find((one) => one.name === name) as Case;
    const x = await call.pair(CKM.EC_MONTGOMERY_KEY_PAIR_GEN, [params(of('x25519')), place], [place, [CKA.SIGN, true]]);
    const ed = await call.pair(
      CKM.EC_EDWARDS_KEY_PAIR_GEN,
      [params(of('ed25519')), place],
      [place, [CKA.DERIVE, true]],
    );
    const signing = { session: call.session, mechanism: mech(CKM.EDDSA), key: x.privateKey };
    expect(await call.agent.rv('C_SignInit', signing)).toBe('CKR_KEY_TYPE_INCONSISTENT');
    const asked = call.derive(agreement(Buffer.alloc(32, 9)), ed.privateKey, ...generic);
    await expect(asked).rejects.toThrow('CKR_KEY_TYPE_INCONSISTENT');
  });

  test('the published answers: RFC 7748, section 5.2, RFC 8032, section 7.4, and RFC 7027, appendix A', async () => {
    const privateKey = (keyType: number, oid: string, value: string) =>
      call.create(
        [CKA.CLASS, CKO.PRIVATE_KEY],
        [CKA.KEY_TYPE, keyType],
        [CKA.EC_PARAMS, hex(oid)],
        [CKA.VALUE, hex(value)],
        place,
      );
    const agreed = async (keyType: number, oid: string, value: string, point: string): Promise<string> => {
      const made = await call.derive(agreement(hex(point)), await privateKey(keyType, oid, value), ...generic);
      return (await call.value(made)).toString('hex');
    };
    expect(
      await agreed(
        CKK.EC_MONTGOMERY,
        '06032b656e',
        'a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4',
        'e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c',
      ),
    ).toBe('c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552');
    expect(
      await agreed(
        CKK.EC_MONTGOMERY,
        '06032b656f',
        '3d262fddf9ec8e88495266fea19a34d28882acef045104d0d1aae121700a779c984c24f8cdd78fbff44943eba368f54b29259a4f1c600ad3',
        '06fce640fa3487bfda5f6cf2d5263f8aad88334cbd07437f020f08f9814dc031ddbdc38c19c6da2583fa5429db94ada18aa7a7fb4ef8a086',
      ),
    ).toBe(
      'ce3e4ff95a60dc6697da1db1d85e6afbdf79b50a2412d7546d5f239fe14fbaadeb445fc66a01b0779d98223961111e21766282f73dd96b6f',
    );
    const brainpool = await agreed(
      CKK.EC,
      '06092b2403030208010107',
      '81db1ee100150ff2ea338d708271be38300cb54241d79950f77b063039804f1d',
      '048d2d688c6cf93e1160ad04cc4429117dc2c41825e1e9fca0addd34e6f1b39f7b990c57520812be512641e47034832106bc7d3e8dd0e4c7f1136d7006547cec6a',
    );
    expect(brainpool).toBe('89afc39d41d3b327814b80940b042590f96556ec91e6ae7939bce31f3a18bf2b');
    const blank = await privateKey(
      CKK.EC_EDWARDS,
      '06032b6571',
      '6c82a562cb808d10d632be89c8513ebf6c929f34ddfa8c9f63c9960ef6e348a3528c8a3fcc2f044e39a3fc5b94492f8f032e7549a20098f95b',
    );
    expect((await call.sign(mech(CKM.EDDSA), blank, Buffer.alloc(0))).toString('hex')).toBe(
      '533a37f6bbe457251f023c0d88f976ae2dfb504a843e34d2074fd823d41a591f2b233f034f628281f2fd7a22ddd47d7828c59bd0a21bfd3980ff0d2028d4b18a9df63e006c5d1c2d345b925d8dc00b4104852db99ac5c7cdda8530a113a0f4dbb61149f05a7363268c71d95808ff2e652600',
    );
  });
});

test('a mechanism reports the sizes of the curves that it accepts', async () => {
  const { agent } = await startSession();
  const sizes = async (type: number) => {
    const { minKeySize, maxKeySize } = await agent.call('C_GetMechanismInfo', { slot: 0, type });
    return [minKeySize, maxKeySize];
  };
  expect(await sizes(CKM.EC_KEY_PAIR_GEN)).toEqual([224, 521]);
  expect(await sizes(CKM.ECDSA)).toEqual([224, 521]);
  expect(await sizes(CKM.ECDH1_DERIVE)).toEqual([224, 521]);
  for (const type of [CKM.EC_EDWARDS_KEY_PAIR_GEN, CKM.EC_MONTGOMERY_KEY_PAIR_GEN, CKM.EDDSA])
    expect(await sizes(type)).toEqual([255, 448]);
});

test('the core generates and describes every curve', () => {
  core.initialize({ allowUnlocked: true });
  for (const curve of ['p224', 'secp256k1', 'brainpool-p512r1', 'ed448', 'x25519', 'x448'] as const) {
    const key = core.generateEc(curve);
    expect(core.describe(key).curve).toBe(curve);
    const half = core.importPublicKey(core.exportPublicKey(key));
    expect(core.describe(half)).toEqual({
      ...core.describe(key),
      kind: core.describe(key).kind.replace('private', 'public'),
    });
    const back = core.importPrivateKey(
      createPrivateKey({ key: core.exportPrivateKey(key), format: 'der', type: 'pkcs8' }).export({
        format: 'der',
        type: 'pkcs8',
      }),
    );
    expect(core.exportPublicKey(back)).toEqual(
      createPublicKey({ key: core.exportPublicKey(half), format: 'der', type: 'spki' }).export({
        format: 'der',
        type: 'spki',
      }),
    );
    for (const each of [key, half, back]) core.release(each);
  }
});
