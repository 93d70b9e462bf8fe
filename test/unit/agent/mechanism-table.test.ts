// Every mechanism is started in every function, with session keys and token keys: those in
// docs/conformance.md start, all others are CKR_MECHANISM_INVALID; and each missing mechanism of
// the standard has a reason.
import { beforeAll, describe, expect, test } from 'vitest';
import { findMechanism, mechanismRows } from '../../../provider/agent/operations/mechanisms.ts';
import { serviceMechanisms } from '../../../provider/agent/service/service-rules.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import type { CallName, Input } from '../../../provider/schema/calls.ts';
import { CKD, CKG, CKK, HKDF_SALT } from '../../../provider/schema/constants.ts';
import { CKM, type MechanismName, mechanisms, parameterKind } from '../../../provider/schema/mechanisms.ts';
import type { Mechanism, MechanismParameter } from '../../../provider/schema/types.ts';
import { type KeyAlgorithm, keyAlgorithms } from '../../../server/contract/tde-objects.ts';
import { takesKey, tokenMechanisms } from '../../../server/domain/token-mechanisms.ts';
import { isCarried, reasonFor, standardUses, type Use, uses } from '../../support/conformance-page.ts';
import { type InProcessAgent, room, rvOf, startInProcess } from '../../support/in-process-agent.ts';
import { CKO } from '../../support/names.ts';
import { places, type Row, template } from '../../support/template.ts';

const names = Object.keys(mechanisms) as MechanismName[];
const p256 = Buffer.from('06082a8648ce3d030107', 'hex');
const ed25519 = Buffer.from('06032b6570', 'hex');
const block = Buffer.alloc(16, 3);

/** The hash that a mechanism's name speaks of; SHA-256 when it speaks of none. */
const hashOf = (
  name: MechanismName,
): 'SHA_1' | 'SHA224' | 'SHA256' | 'SHA384' | 'SHA512' | `SHA3_${224 | 256 | 384 | 512}` =>
  name.startsWith('SHA1') ? 'SHA_1' : ((/^(SHA3_\d+|SHA\d+)/.exec(name)?.[1] ?? 'SHA256') as 'SHA256');
const masks = {
  SHA_1: CKG.MGF1_SHA1,
  SHA224: CKG.MGF1_SHA224,
  SHA256: CKG.MGF1_SHA256,
  SHA384: CKG.MGF1_SHA384,
  SHA512: CKG.MGF1_SHA512,
  SHA3_224: CKG.MGF1_SHA3_224,
  SHA3_256: CKG.MGF1_SHA3_256,
  SHA3_384: CKG.MGF1_SHA3_384,
  SHA3_512: CKG.MGF1_SHA3_512,
} as const;

let fresh = 0;
const parameterFor = (name: MechanismName): MechanismParameter | null => {
  const kind = parameterKind(CKM[name]);
  const hash = hashOf(name);
  switch (kind) {
    case 'none':
    case 'eddsa':
      return null;
    case 'bytes':
      return name.startsWith('AES_KEY_WRAP') ? null : { kind, bytes: block };
    case 'ulong':
      return { kind, value: 16 };
    case 'ctr':
      return { kind, counterBits: 128, block };
    case 'gcm': {
      const iv = Buffer.alloc(12);
      iv.writeUInt32BE(++fresh);
      return { kind, iv, ivBits: 96, aad: block, tagBits: 128 };
    }
    case 'ccm':
      return { kind, dataLength: 16, nonce: Buffer.alloc(12), aad: block, macLength: 16 };
    case 'pss':
      return { kind, hash: CKM[hash], mgf: masks[hash], saltLength: 20 };
    case 'oaep':
      return { kind, hash: CKM[hash], mgf: masks[hash], source: 1, label: Buffer.alloc(0) };
    case 'ecdh1':
      return { kind, kdf: CKD.NULL, shared: Buffer.alloc(0), publicData: Buffer.alloc(65, 4) };
    case 'hkdf':
      return {
        kind,
        extract: true,
        expand: true,
        hash: CKM.SHA256,
        saltType: HKDF_SALT.NULL,
        salt: Buffer.alloc(0),
        saltKey: 0,
        info: Buffer.alloc(0),
      };
    case 'data':
      return { kind, data: block };
    case 'ivdata':
      return { kind, iv: block, data: block };
    case 'sp800': {
      const bits = name === 'SP800_108_FEEDBACK_KDF' ? 0 : 32;
      const data = [{ type: 1, littleEndian: false, bits, method: 0, bytes: Buffer.alloc(0) }];
      return { kind, prf: CKM.SHA256_HMAC, additionalKeys: 0, iv: Buffer.alloc(0), data };
    }
  }
};

test('what the standard has and is not carried has a reason, and what is carried the standard has', () => {
  for (const name of names) {
    for (const use of Object.keys(uses) as Use[]) {
      const expected = standardUses(name).includes(use);
      if (isCarried(name, use)) expect(expected, `${name} ${use}`).toBe(true);
      else if (expected) expect(reasonFor(name, use), `${name} ${use}`).toBeDefined();
    }
  }
});

describe.each(places)('with keys of the %s', (_where, token) => {
  let agent: InProcessAgent;
  let session: number;
  const secrets = new Map<number, number>();
  const pairs = new Map<number, { publicKey: number; privateKey: number }>();
  const place: Row = [CKA.TOKEN, token];

  beforeAll(async () => {
    agent = await startInProcess();
    session = await agent.open();
    const types = new Set(names.flatMap((name) => findMechanism(CKM[name])?.keyTypes ?? []));
    for (const type of types) {
      if (type === CKK.RSA || type === CKK.EC || type === CKK.EC_EDWARDS || type === CKK.EC_MONTGOMERY) continue;
      const bytes = type === CKK.AES ? 32 : 64;
      const made = await agent.create(
        session,
        [CKA.CLASS, CKO.SECRET_KEY],
        [CKA.KEY_TYPE, type],
        [CKA.VALUE, Buffer.alloc(bytes, type)],
        place,
        [CKA.DERIVE, true],
      );
      secrets.set(type, made as number);
    }
    for (const [type, mechanism, rows] of [
      [CKK.RSA, CKM.RSA_PKCS_KEY_PAIR_GEN, [[CKA.MODULUS_BITS, 2048]]],
      [CKK.EC, CKM.EC_KEY_PAIR_GEN, [[CKA.EC_PARAMS, p256]]],
      [CKK.EC_EDWARDS, CKM.EC_EDWARDS_KEY_PAIR_GEN, [[CKA.EC_PARAMS, ed25519]]],
    ] as const) {
      const recover = type === CKK.RSA;
      const pair = await agent.pair(
        session,
        mechanism,
        [place, ...rows, [CKA.VERIFY_RECOVER, recover]],
        [place, [CKA.SIGN_RECOVER, recover]],
      );
      pairs.set(type, pair as { publicKey: number; privateKey: number });
    }
  });

  const halves: Partial<Record<Use, 'publicKey' | 'privateKey'>> = {
    encrypt: 'publicKey',
    verify: 'publicKey',
    verifyRecover: 'publicKey',
    wrap: 'publicKey',
  };
  /** A key that the mechanism takes in this use; any AES key for one that is not carried. */
  const keyFor = (name: MechanismName, use: Use): number => {
    const [type = CKK.AES] = findMechanism(CKM[name])?.keyTypes ?? [];
    return pairs.get(type)?.[halves[use] ?? 'privateKey'] ?? secrets.get(type) ?? 0;
  };

  const inits = {
    encrypt: 'C_EncryptInit',
    decrypt: 'C_DecryptInit',
    encryptMessage: 'C_MessageEncryptInit',
    decryptMessage: 'C_MessageDecryptInit',
    sign: 'C_SignInit',
    signRecover: 'C_SignRecoverInit',
    verify: 'C_VerifyInit',
    verifyRecover: 'C_VerifyRecoverInit',
  } as const satisfies Partial<Record<Use, CallName>>;

  const start = async (name: MechanismName, use: Use): Promise<string> => {
    const mechanism: Mechanism = { type: CKM[name], parameter: parameterFor(name) };
    const key = keyFor(name, use);
    switch (use) {
      case 'generate':
        return agent.rv('C_GenerateKey', { session, mechanism, template: template() });
      case 'pair':
        return agent.rv('C_GenerateKeyPair', {
          session,
          mechanism,
          publicTemplate: template(),
          privateTemplate: template(),
        });
      case 'digest': {
        const rv = await agent.rv('C_DigestInit', { session, mechanism });
        await agent.call('C_DigestInit', { session, mechanism: null });
        return rv;
      }
      case 'wrap':
        return agent.rv('C_WrapKey', { session, mechanism, wrappingKey: key, key, wrappedKey: room(0) });
      case 'unwrap':
        return rvOf(agent.unwrap(session, mechanism, key, block));
      case 'derive':
        return agent.rv('C_DeriveKey', { session, mechanism, baseKey: key, template: template() });
      default: {
        const given =
          use === 'encryptMessage' || use === 'decryptMessage' ? { ...mechanism, parameter: null } : mechanism;
        const rv = await agent.rv(inits[use], { session, mechanism: given, key });
        await agent.call(inits[use], { session, mechanism: null, key: 0 } as Input<(typeof inits)[typeof use]>);
        return rv;
      }
    }
  };
  /**
   * A separate Init succeeds; the other functions refuse because their templates are incomplete.
   */
  const starts = (use: Use): boolean => use === 'digest' || use in inits;

  test.each(Object.keys(uses) as Use[])('%s', async (use) => {
    for (const name of names) {
      const rv = await start(name, use);
      if (!isCarried(name, use)) expect(rv, name).toBe('CKR_MECHANISM_INVALID');
      else if (starts(use)) expect(rv, name).toBe('CKR_OK');
      else expect(rv, name).not.toBe('CKR_MECHANISM_INVALID');
    }
  });
});

test('the service has a name for each mechanism that uses a key, and it takes the keys that the agent takes', () => {
  const algorithmsOf = new Map<number, readonly KeyAlgorithm[]>([
    [CKK.AES, ['aes']],
    [CKK.RSA, ['rsa']],
    [CKK.EC, ['ec', 'secp256k1', 'brainpool']],
    [CKK.EC_EDWARDS, ['ed25519', 'ed448']],
    [CKK.EC_MONTGOMERY, ['x25519', 'x448']],
  ]);
  const using = mechanismRows.filter(({ keyTypes }) => keyTypes.length > 0);
  expect(using.filter(({ type }) => !serviceMechanisms.has(type))).toEqual([]);
  expect([...serviceMechanisms.keys()].filter((type) => findMechanism(type)?.keyTypes.length === 0)).toEqual([]);
  expect([...new Set([...serviceMechanisms.values()].flat())].sort()).toEqual([...tokenMechanisms].sort());
  for (const { type, keyTypes } of using) {
    // ECDH with the cofactor is for fewer curves, and the service does not distinguish it.
    if (type === CKM.ECDH1_COFACTOR_DERIVE) continue;
    const wanted = new Set(keyTypes.flatMap((keyType) => algorithmsOf.get(keyType) ?? ['generic' as const]));
    const taken = keyAlgorithms.filter((algorithm) => {
      const isSecret = algorithm === 'aes' || algorithm === 'generic';
      const key = { class: isSecret ? 'secret-key' : 'private-key', algorithm } as const;
      return serviceMechanisms.get(type)?.some((mechanism) => takesKey(mechanism, 'sign', key));
    });
    expect(taken, String(type)).toEqual(keyAlgorithms.filter((algorithm) => wanted.has(algorithm)));
  }
});
