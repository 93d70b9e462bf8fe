// Every row of the table of mechanisms does what C_GetMechanismInfo says of it and nothing else, with keys of a session and of
// the token: flags, types of key, parameters, permissions and sizes (PKCS#11 2.40, sections 5.5 and 5.8 to 5.14).
import { generateKeyPairSync } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { isAsymmetric, type MechanismRow, mechanismRows } from '../../../provider/client/operations/mechanisms.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKF, CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM, mechanismName } from '../../../provider/schema/mechanisms.ts';
import type { MechanismParameter } from '../../../provider/schema/types.ts';
import { given, type InProcessAgent, room, startInProcess } from '../../support/in-process-agent.ts';
import {
  badParameters,
  createSecret,
  curve,
  goodParameter,
  makeSampleKeys,
  pairTemplates,
  type Row,
  type SampleKeys,
} from '../../support/mechanism-samples.ts';
import { template } from '../../support/template.ts';

const named = mechanismRows.map((row) => [mechanismName(row.type), row] as const);

/** Which half of a pair a use takes. */
const uses = {
  encrypt: { flag: CKF.ENCRYPT, half: 'publicKey', permission: CKA.ENCRYPT },
  decrypt: { flag: CKF.DECRYPT, half: 'privateKey', permission: CKA.DECRYPT },
  sign: { flag: CKF.SIGN, half: 'privateKey', permission: CKA.SIGN },
  verify: { flag: CKF.VERIFY, half: 'publicKey', permission: CKA.VERIFY },
  digest: { flag: CKF.DIGEST, half: 'publicKey', permission: null },
  wrap: { flag: CKF.WRAP, half: 'publicKey', permission: CKA.WRAP },
  unwrap: { flag: CKF.UNWRAP, half: 'privateKey', permission: CKA.UNWRAP },
  derive: { flag: CKF.DERIVE, half: 'privateKey', permission: CKA.DERIVE },
  generate: { flag: CKF.GENERATE, half: 'publicKey', permission: null },
  generatePair: { flag: CKF.GENERATE_KEY_PAIR, half: 'publicKey', permission: null },
  messageEncrypt: { flag: CKF.MESSAGE_ENCRYPT, half: 'publicKey', permission: CKA.ENCRYPT },
  messageDecrypt: { flag: CKF.MESSAGE_DECRYPT, half: 'privateKey', permission: CKA.DECRYPT },
} as const;
type Use = keyof typeof uses;
const allUses = Object.keys(uses) as Use[];
const usesOf = ({ flags }: MechanismRow): Use[] => allUses.filter((use) => (flags & uses[use].flag) !== 0);
/** Those with a key and a parameter of their own. */
const keyUses: readonly Use[] = ['encrypt', 'decrypt', 'sign', 'verify', 'wrap', 'unwrap', 'derive'];

const secretRows: Row[] = [
  [CKA.CLASS, CKO.SECRET_KEY],
  [CKA.KEY_TYPE, CKK.GENERIC_SECRET],
];

class Host {
  readonly agent: InProcessAgent;
  readonly session: number;
  readonly keys: SampleKeys;
  readonly token: boolean;

  constructor(agent: InProcessAgent, session: number, keys: SampleKeys, token: boolean) {
    this.agent = agent;
    this.session = session;
    this.keys = keys;
    this.token = token;
  }

  /** A key that fits, as far as the table says what fits. */
  fitting(row: MechanismRow, use: Use): number {
    const [keyType = CKK.AES] = row.keyTypes;
    return this.keys.secret.get(keyType) ?? this.keys.pairs.get(keyType)?.[uses[use].half] ?? 0;
  }

  /** What comes of one use, which is ended again. */
  async try(
    row: MechanismRow,
    use: Use,
    key: number = this.fitting(row, use),
    parameter: MechanismParameter | null = goodParameter(row),
  ): Promise<string> {
    const { agent, session } = this;
    const mechanism = { type: row.type, parameter };
    const none = { session, mechanism: null, key: 0 };
    switch (use) {
      case 'encrypt': {
        const rv = await agent.rv('C_EncryptInit', { session, mechanism, key });
        await agent.call('C_EncryptInit', none);
        return rv;
      }
      case 'decrypt': {
        const rv = await agent.rv('C_DecryptInit', { session, mechanism, key });
        await agent.call('C_DecryptInit', none);
        return rv;
      }
      case 'sign': {
        const rv = await agent.rv('C_SignInit', { session, mechanism, key });
        await agent.call('C_SignInit', none);
        return rv;
      }
      case 'verify': {
        const rv = await agent.rv('C_VerifyInit', { session, mechanism, key });
        await agent.call('C_VerifyInit', none);
        return rv;
      }
      case 'digest': {
        const rv = await agent.rv('C_DigestInit', { session, mechanism });
        await agent.call('C_DigestInit', { session, mechanism: null });
        return rv;
      }
      case 'messageEncrypt': {
        const rv = await agent.rv('C_MessageEncryptInit', {
          session,
          mechanism: { ...mechanism, parameter: null },
          key,
        });
        await agent.call('C_MessageEncryptInit', none);
        return rv;
      }
      case 'messageDecrypt': {
        const rv = await agent.rv('C_MessageDecryptInit', {
          session,
          mechanism: { ...mechanism, parameter: null },
          key,
        });
        await agent.call('C_MessageDecryptInit', none);
        return rv;
      }
      case 'wrap':
        return agent.rv('C_WrapKey', {
          session,
          mechanism,
          wrappingKey: key,
          key: this.keys.open,
          wrappedKey: room(1024),
        });
      case 'unwrap':
        return this.#unwrap(row, key, parameter);
      case 'derive': {
        const length: Row = [CKA.VALUE_LEN, 16];
        const rows = row.derivesData ? [length] : [...secretRows, length];
        return agent.rv('C_DeriveKey', { session, mechanism, baseKey: key, template: template(...rows) });
      }
      case 'generate':
        return agent.rv('C_GenerateKey', { session, mechanism, template: template([CKA.VALUE_LEN, 16]) });
      case 'generatePair':
        return agent.rv('C_GenerateKeyPair', {
          session,
          mechanism,
          publicTemplate: template(...(pairTemplates.get(row.generatesPair ?? CKK.EC)?.rows ?? [])),
          privateTemplate: [],
        });
    }
  }

  /** Unwraps what the fitting key has wrapped; 256 bytes of nothing where it cannot wrap. */
  async #unwrap(row: MechanismRow, key: number, parameter: MechanismParameter | null): Promise<string> {
    const { agent, session } = this;
    let wrappedKey: Uint8Array = Buffer.alloc(256);
    if ((row.flags & CKF.WRAP) !== 0) {
      const wrapped = room(1024);
      const output = await agent.call('C_WrapKey', {
        session,
        mechanism: { type: row.type, parameter: goodParameter(row) },
        wrappingKey: this.fitting(row, 'wrap'),
        key: this.keys.open,
        wrappedKey: wrapped,
      });
      wrappedKey = given(wrapped, output) as Buffer;
    }
    return agent.rv('C_UnwrapKey', {
      session,
      mechanism: { type: row.type, parameter },
      unwrappingKey: key,
      wrappedKey,
      template: template(...secretRows),
    });
  }
}

const wrongType = { wrap: 'CKR_WRAPPING_KEY_TYPE_INCONSISTENT', unwrap: 'CKR_UNWRAPPING_KEY_TYPE_INCONSISTENT' };
const wrongTypeOf = (use: Use): string =>
  use === 'wrap' || use === 'unwrap' ? wrongType[use] : 'CKR_KEY_TYPE_INCONSISTENT';

test('the list and the information of C_GetMechanismInfo are those of the table', async () => {
  const agent = await startInProcess();
  const listed = await agent.call('C_GetMechanismList', { slot: 0, mechanisms: null });
  expect(listed).toEqual(mechanismRows.map(({ type }) => type));
  expect(new Set(listed).size).toBe(mechanismRows.length);
  for (const { type, minKeySize, maxKeySize, flags } of mechanismRows) {
    expect(await agent.call('C_GetMechanismInfo', { slot: 0, type })).toEqual({ minKeySize, maxKeySize, flags });
  }
  expect(await agent.rv('C_GetMechanismInfo', { slot: 0, type: CKM.MD5 })).toBe('CKR_MECHANISM_INVALID');
});

describe.each([
  ['the session', false],
  ['the token', true],
] as const)('with keys of %s', (_where, token) => {
  let host: Host;
  beforeAll(async () => {
    const agent = await startInProcess();
    const session = await agent.open();
    host = new Host(agent, session, await makeSampleKeys(agent, session, token), token);
  });

  test.each(named)('%s does what its flags say, and nothing else', async (_name, row) => {
    const outcome = new Map<Use, string>();
    for (const use of allUses) outcome.set(use, await host.try(row, use));
    const expected = allUses.map(
      (use) => [use, (row.flags & uses[use].flag) === 0 ? 'CKR_MECHANISM_INVALID' : 'CKR_OK'] as const,
    );
    expect(outcome).toEqual(new Map(expected));
  });

  test.each(named)(
    '%s takes keys of its types alone, of a pair the right half, and no other handle',
    async (_name, row) => {
      const { secret, pairs } = host.keys;
      for (const use of usesOf(row).filter((each) => keyUses.includes(each))) {
        const { half } = uses[use];
        for (const [keyType, key] of [...secret, ...[...pairs].map(([type, pair]) => [type, pair[half]] as const)]) {
          const rv = await host.try(row, use, key);
          if (!row.keyTypes.includes(keyType)) expect([use, keyType, rv]).toEqual([use, keyType, wrongTypeOf(use)]);
          else expect([use, keyType, rv]).toEqual([use, keyType, 'CKR_OK']);
        }
        if (isAsymmetric(row)) {
          const [keyType = 0] = row.keyTypes;
          const other = pairs.get(keyType)?.[half === 'publicKey' ? 'privateKey' : 'publicKey'] ?? 0;
          expect(await host.try(row, use, other)).toBe('CKR_KEY_FUNCTION_NOT_PERMITTED');
        }
        const prefix = use === 'wrap' ? 'WRAPPING_' : use === 'unwrap' ? 'UNWRAPPING_' : '';
        expect(await host.try(row, use, 0x7fff_fff0)).toBe(`CKR_${prefix}KEY_HANDLE_INVALID`);
      }
    },
  );

  test.each(named)('%s refuses parameters that are not its own, or are wrong', async (_name, row) => {
    for (const use of usesOf(row).filter((each) => !each.startsWith('message'))) {
      for (const parameter of badParameters(row)) {
        const rv = await host.try(row, use, host.fitting(row, use), parameter);
        expect([use, parameter, rv]).toEqual([use, parameter, 'CKR_MECHANISM_PARAM_INVALID']);
      }
    }
  });

  test.each(named.filter(([, row]) => !isAsymmetric(row) && row.keyTypes.length > 0))(
    '%s needs the permission, and the mechanism among those that the key allows',
    async (_name, row) => {
      const { agent, session } = host;
      const [keyType = 0] = row.keyTypes;
      const place: Row = [CKA.TOKEN, token];
      for (const use of usesOf(row)) {
        const { permission } = uses[use];
        if (permission === null) continue;
        const idle = await createSecret(agent, session, keyType, place, [permission, false]);
        expect([use, await host.try(row, use, idle)]).toEqual([use, 'CKR_KEY_FUNCTION_NOT_PERMITTED']);
        const bound = await createSecret(agent, session, keyType, place, [CKA.ALLOWED_MECHANISMS, [CKM.AES_CTS]]);
        expect([use, await host.try(row, use, bound)]).toEqual([use, 'CKR_MECHANISM_INVALID']);
        const free = await createSecret(agent, session, keyType, place, [CKA.ALLOWED_MECHANISMS, [row.type]]);
        expect([use, await host.try(row, use, free)]).toEqual([use, 'CKR_OK']);
      }
    },
  );

  const generators = named.filter(([, { generates }]) => generates !== undefined);
  test.each(generators)('%s makes keys of the sizes that it names, and no others', async (_name, row) => {
    const { agent, session } = host;
    const { type, minKeySize, maxKeySize } = row;
    // Generic secrets are measured in bits.
    const unit = row.generates === CKK.GENERIC_SECRET ? 8 : 1;
    const [least, most] = [minKeySize / unit, maxKeySize / unit];
    const make = (length: number) =>
      agent.rv('C_GenerateKey', {
        session,
        mechanism: { type, parameter: null },
        template: template([CKA.VALUE_LEN, length], [CKA.TOKEN, token]),
      });
    for (const length of [least, most]) expect([length, await make(length)]).toEqual([length, 'CKR_OK']);
    for (const length of [0, least - 1, most + 1]) {
      expect([length, await make(length)]).toEqual([length, 'CKR_ATTRIBUTE_VALUE_INVALID']);
    }
  });

  test('pairs are made of the sizes that the table names, and no others', async () => {
    const { agent, session } = host;
    const make = (type: number, ...rows: Row[]) =>
      agent.rv('C_GenerateKeyPair', {
        session,
        mechanism: { type, parameter: null },
        publicTemplate: template(...rows, [CKA.TOKEN, token]),
        privateTemplate: template([CKA.TOKEN, token]),
      });
    for (const bits of [0, 1024, 2040, 4104, 1 << 20]) {
      expect(await make(CKM.RSA_PKCS_KEY_PAIR_GEN, [CKA.MODULUS_BITS, bits])).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
    }
    for (const oid of ['06082a8648ce3d030107', '06052b81040022', '06052b81040023']) {
      expect(await make(CKM.EC_KEY_PAIR_GEN, [CKA.EC_PARAMS, Buffer.from(oid, 'hex')])).toBe('CKR_OK');
    }
    // P-224 and brainpoolP512r1 are outside of the sizes, or of the kind of curve; Ed25519 is none of ECDSA.
    for (const oid of ['06052b81040021', '06092b240303020801010d', '06032b6570']) {
      const rv = await make(CKM.EC_KEY_PAIR_GEN, [CKA.EC_PARAMS, Buffer.from(oid, 'hex')]);
      expect([oid, rv]).toEqual([oid, 'CKR_CURVE_NOT_SUPPORTED']);
    }
    const wrong = await make(CKM.EC_EDWARDS_KEY_PAIR_GEN, [CKA.EC_PARAMS, curve('p256')]);
    expect(wrong).toBe('CKR_CURVE_NOT_SUPPORTED');
  });

  test('keys that are brought keep to the sizes of the table', async () => {
    const { agent, session } = host;
    const create = async (keyType: number, length: number): Promise<string> => {
      try {
        await createSecret(agent, session, keyType, [CKA.VALUE, Buffer.alloc(length, 1)], [CKA.TOKEN, token]);
        return 'CKR_OK';
      } catch (error) {
        return (error as { rv: string }).rv;
      }
    };
    for (const length of [16, 24, 32]) expect(await create(CKK.AES, length)).toBe('CKR_OK');
    for (const length of [0, 8, 17, 33]) expect(await create(CKK.AES, length)).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
    for (const keyType of host.keys.secret.keys()) {
      if (keyType === CKK.AES) continue;
      for (const length of [1, 512]) expect([keyType, await create(keyType, length)]).toEqual([keyType, 'CKR_OK']);
      for (const length of [0, 513]) {
        expect([keyType, await create(keyType, length)]).toEqual([keyType, 'CKR_ATTRIBUTE_VALUE_INVALID']);
      }
    }
    const short = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' });
    const rv = await agent.rv('C_CreateObject', {
      session,
      template: template(
        [CKA.CLASS, CKO.PUBLIC_KEY],
        [CKA.KEY_TYPE, CKK.RSA],
        [CKA.MODULUS, Buffer.from(String(short.n), 'base64url')],
        [CKA.PUBLIC_EXPONENT, Buffer.from(String(short.e), 'base64url')],
        [CKA.TOKEN, token],
      ),
    });
    expect(rv).toBe('CKR_ATTRIBUTE_VALUE_INVALID');
  });
});
