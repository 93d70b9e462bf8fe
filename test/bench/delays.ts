// How long one process waits while another one makes the longest calls. Both are separate processes
// with the built library. The first requests random bytes from the agent, and encrypts with a token
// key in the service, without a pause. The second makes each slow call several times. The figure is
// the longest call of the first one in the meantime, next to that with no other call.
import { type ChildProcess, fork } from 'node:child_process';
import { constants, createPublicKey, generateKeyPairSync, publicEncrypt } from 'node:crypto';
import { once } from 'node:events';
import pkcs11js from 'pkcs11js';
import { library } from '../support/pkcs11-host.ts';
import { startOurs } from './ours.ts';

export interface Delay {
  readonly during: string;
  readonly calls: number;
  /** Milliseconds. */
  readonly slowMs: number;
  readonly agentMs: number;
  readonly serviceMs: number;
}

interface Longest {
  readonly calls: number;
  readonly agentMs: number;
  readonly serviceMs: number;
}

const repeats = 5;
const rsaBits = 4096;

const open = () => {
  const pkcs11 = new pkcs11js.PKCS11();
  pkcs11.load(library);
  pkcs11.C_Initialize();
  const [slot] = pkcs11.C_GetSlotList(true);
  if (slot === undefined) throw new Error('there is no slot');
  const session = pkcs11.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION);
  pkcs11.C_Login(session, pkcs11js.CKU_USER, 'any');
  return { pkcs11, session, slot };
};

/** The process whose waiting is measured: reports its longest call on request, and starts again. */
const wait = async (): Promise<void> => {
  const { pkcs11, session } = open();
  const key = pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
    { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
    { type: pkcs11js.CKA_TOKEN, value: true },
    { type: pkcs11js.CKA_LABEL, value: 'waiting' },
    { type: pkcs11js.CKA_ENCRYPT, value: true },
  ]);
  const cbc = { mechanism: pkcs11js.CKM_AES_CBC, parameter: Buffer.alloc(16) };
  const [plain, room] = [Buffer.alloc(48), Buffer.alloc(64)];
  const timed = (call: () => unknown): number => {
    const start = performance.now();
    call();
    return performance.now() - start;
  };
  const fresh = { calls: 0, agentMs: 0, serviceMs: 0 };
  let longest = { ...fresh };
  process.on('message', () => {
    process.send?.(longest);
    longest = { ...fresh };
  });
  for (;;) {
    const agentMs = timed(() => pkcs11.C_GenerateRandom(session, Buffer.alloc(32)));
    const serviceMs = timed(() => {
      pkcs11.C_EncryptInit(session, cbc, key);
      pkcs11.C_Encrypt(session, plain, room);
    });
    longest = {
      calls: longest.calls + 2,
      agentMs: Math.max(longest.agentMs, agentMs),
      serviceMs: Math.max(longest.serviceMs, serviceMs),
    };
    await new Promise((resolve) => setImmediate(resolve));
  }
};

const longestOf = async (child: ChildProcess): Promise<Longest> => {
  child.send('longest');
  const [longest] = (await once(child, 'message')) as [Longest];
  return longest;
};

const slowCalls = (): Readonly<Record<string, () => unknown>> => {
  const { pkcs11, session, slot } = open();
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: rsaBits });
  const jwk = privateKey.export({ format: 'jwk' });
  const number = (text: string | undefined): Buffer => Buffer.from(String(text), 'base64url');
  const rsa = [
    { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_PRIVATE_KEY },
    { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_RSA },
    { type: pkcs11js.CKA_EXTRACTABLE, value: true },
  ];
  const numbers = (of: Partial<Record<string, Buffer>>) => [
    { type: pkcs11js.CKA_MODULUS, value: of.n ?? number(jwk.n) },
    { type: pkcs11js.CKA_PUBLIC_EXPONENT, value: number(jwk.e) },
    { type: pkcs11js.CKA_PRIVATE_EXPONENT, value: of.n ?? number(jwk.d) },
    { type: pkcs11js.CKA_PRIME_1, value: of.p ?? number(jwk.p) },
    { type: pkcs11js.CKA_PRIME_2, value: of.p ?? number(jwk.q) },
    { type: pkcs11js.CKA_EXPONENT_1, value: of.p ?? number(jwk.dp) },
    { type: pkcs11js.CKA_EXPONENT_2, value: of.p ?? number(jwk.dq) },
    { type: pkcs11js.CKA_COEFFICIENT, value: of.p ?? number(jwk.qi) },
  ];
  const uses = [pkcs11js.CKA_SIGN, pkcs11js.CKA_DECRYPT, pkcs11js.CKA_UNWRAP].map((type) => ({ type, value: true }));
  let label = 0;
  const onToken = () => [
    { type: pkcs11js.CKA_TOKEN, value: true },
    { type: pkcs11js.CKA_LABEL, value: `slow ${label++}` },
  ];
  const create = (token: boolean) =>
    pkcs11.C_CreateObject(session, [...rsa, ...uses, ...numbers({}), ...(token ? onToken() : [])]);
  const [local, remote] = [create(false), create(true)];
  const wrapper = (token: boolean) =>
    pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
      { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
      { type: pkcs11js.CKA_WRAP, value: true },
      { type: pkcs11js.CKA_UNWRAP, value: true },
      { type: pkcs11js.CKA_DECRYPT, value: false },
      ...(token ? onToken() : []),
    ]);
  const kwp = { mechanism: 0x0000210b };
  const wrappers = [wrapper(false), wrapper(true)] as const;
  const wrapped = [
    pkcs11.C_WrapKey(session, kwp, wrappers[0], local, Buffer.alloc(4096)),
    pkcs11.C_WrapKey(session, kwp, wrappers[1], remote, Buffer.alloc(4096)),
  ] as const;
  const oaep = {
    mechanism: pkcs11js.CKM_RSA_PKCS_OAEP,
    parameter: {
      type: pkcs11js.CK_PARAMS_RSA_OAEP,
      hashAlg: pkcs11js.CKM_SHA256,
      mgf: pkcs11js.CKG_MGF1_SHA256,
      source: 1,
    },
  };
  const encrypted = publicEncrypt(
    { key: createPublicKey(privateKey), padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' },
    Buffer.alloc(32),
  );
  const sign = (key: Buffer) => {
    pkcs11.C_SignInit(session, { mechanism: pkcs11js.CKM_SHA256_RSA_PKCS }, key);
    pkcs11.C_Sign(session, encrypted, Buffer.alloc(512));
  };
  const decrypt = (key: Buffer) => {
    pkcs11.C_DecryptInit(session, oaep, key);
    pkcs11.C_Decrypt(session, encrypted, Buffer.alloc(512));
  };
  const pair = (token: boolean) =>
    pkcs11.C_GenerateKeyPair(
      session,
      { mechanism: pkcs11js.CKM_RSA_PKCS_KEY_PAIR_GEN },
      [{ type: pkcs11js.CKA_MODULUS_BITS, value: rsaBits }],
      token ? onToken() : [],
    );
  const pairOn = (mechanism: number, curve: string, token: boolean) =>
    pkcs11.C_GenerateKeyPair(
      session,
      { mechanism },
      [{ type: pkcs11js.CKA_EC_PARAMS, value: Buffer.from(curve, 'hex') }],
      [...(token ? onToken() : []), { type: pkcs11js.CKA_SIGN, value: true }],
    );
  /** The curves that take longest, of each kind. */
  const curves: Readonly<Record<string, readonly [mechanism: number, curve: string]>> = {
    'P-521': [pkcs11js.CKM_EC_KEY_PAIR_GEN, '06052b81040023'],
    brainpoolP512r1: [pkcs11js.CKM_EC_KEY_PAIR_GEN, '06092b240303020801010d'],
    secp256k1: [pkcs11js.CKM_EC_KEY_PAIR_GEN, '06052b8104000a'],
    Ed448: [0x00001055, '06032b6571'],
    X448: [0x00001056, '06032b656f'],
  };
  const onCurves = Object.fromEntries(
    Object.entries(curves).flatMap(([name, [mechanism, curve]]) => [
      [`a pair on ${name}`, () => pairOn(mechanism, curve, false)],
      [`a pair on ${name} on the token`, () => pairOn(mechanism, curve, true)],
    ]),
  );
  const edwards = pairOn(0x00001055, '06032b6571', false);
  const agreeing = pkcs11.C_GenerateKeyPair(
    session,
    { mechanism: pkcs11js.CKM_EC_KEY_PAIR_GEN },
    [{ type: pkcs11js.CKA_EC_PARAMS, value: Buffer.from('06052b81040023', 'hex') }],
    [{ type: pkcs11js.CKA_DERIVE, value: true }],
  );
  const [{ value: point } = { value: Buffer.alloc(0) }] = pkcs11.C_GetAttributeValue(session, agreeing.publicKey, [
    { type: pkcs11js.CKA_EC_POINT },
  ]);
  const agreement = {
    type: pkcs11js.CK_PARAMS_EC_DH,
    kdf: pkcs11js.CKD_SHA1_KDF,
    publicData: point as Buffer,
    sharedData: Buffer.alloc(32_768),
  };
  const derive = () =>
    pkcs11.C_DeriveKey(
      session,
      {
        mechanism: pkcs11js.CKM_ECDH1_DERIVE,
        parameter: agreement,
      },
      agreeing.privateKey,
      [
        { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
        { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_GENERIC_SECRET },
        { type: pkcs11js.CKA_VALUE_LEN, value: 512 },
      ],
    );
  const cipherKey = (token: boolean) =>
    pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
      { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
      { type: pkcs11js.CKA_SIGN, value: true },
      ...(token ? onToken() : []),
    ]);
  const ciphers = [cipherKey(false), cipherKey(true)] as const;
  const encrypt = (key: Buffer, mechanism: number, parameter?: Buffer) => {
    pkcs11.C_EncryptInit(session, { mechanism, ...(parameter === undefined ? {} : { parameter }) }, key);
    pkcs11.C_Encrypt(session, Buffer.alloc(960_000), Buffer.alloc(960_032));
  };
  const signWith = (key: Buffer, mechanism: number) => {
    pkcs11.C_SignInit(session, { mechanism }, key);
    pkcs11.C_Sign(session, Buffer.alloc(960_000), Buffer.alloc(128));
  };
  /**
   * The maximum number of objects of one user would take a minute to create, so this is a fifth of
   * it.
   */
  const manyObjects = 13_000;
  const fill = () => {
    const crowded = pkcs11.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION);
    for (let i = 0; i < manyObjects; i++)
      pkcs11.C_CreateObject(crowded, [
        { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_DATA },
        { type: pkcs11js.CKA_LABEL, value: `object ${i}` },
      ]);
    return crowded;
  };
  const search = (...rows: pkcs11js.Template) => {
    pkcs11.C_FindObjectsInit(session, rows);
    while (pkcs11.C_FindObjects(session, 1_000).length > 0);
    pkcs11.C_FindObjectsFinal(session);
  };
  let crowded = fill();
  const refill = () => {
    pkcs11.C_CloseSession(crowded);
    crowded = fill();
  };
  const digest = (mechanism: number, bytes: number) =>
    (pkcs11.C_DigestInit(session, { mechanism }) as unknown) ??
    pkcs11.C_Digest(session, Buffer.alloc(bytes), Buffer.alloc(64));
  const refused = (call: () => unknown): void => {
    try {
      call();
    } catch {
      return;
    }
    throw new Error('the key was taken');
  };
  const largest = { n: Buffer.alloc(1792, 0xc5), p: Buffer.alloc(896, 0xc5) };
  const large = 1_000_000;
  return {
    'an RSA-4096 pair': () => pair(false),
    'an RSA-4096 pair on the token': () => pair(true),
    'an RSA-4096 key that comes in': () => create(false),
    'an RSA-4096 key that comes onto the token': () => create(true),
    'an RSA key of 14,336 bits': () => refused(() => pkcs11.C_CreateObject(session, [...rsa, ...numbers(largest)])),
    'an RSA-4096 key unwrapped': () => pkcs11.C_UnwrapKey(session, kwp, wrappers[0], wrapped[0], rsa),
    'an RSA-4096 key unwrapped on the token': () =>
      pkcs11.C_UnwrapKey(session, kwp, wrappers[1], wrapped[1], [...rsa, ...onToken()]),
    'a signature with RSA-4096': () => sign(local),
    'a signature with RSA-4096 of the token': () => sign(remote),
    'a decryption with RSA-4096': () => decrypt(local),
    'a decryption with RSA-4096 of the token': () => decrypt(remote),
    'an RSA-4096 key of two numbers': () =>
      pkcs11.C_CreateObject(
        session,
        [...rsa, ...numbers({})].filter(
          ({ type }) => ![pkcs11js.CKA_PRIME_1, pkcs11js.CKA_PRIME_2, pkcs11js.CKA_PUBLIC_EXPONENT].includes(type),
        ),
      ),
    ...onCurves,
    'an agreement on P-521 with 32 KiB of shared data': derive,
    'Ed448 of 960,000 bytes': () => signWith(edwards.privateKey, 0x00001057),
    'CMAC of 960,000 bytes': () => signWith(ciphers[0], 0x0000108a),
    'CMAC of 960,000 bytes with a key of the token': () => signWith(ciphers[1], 0x0000108a),
    'AES-CBC of 960,000 bytes': () => encrypt(ciphers[0], pkcs11js.CKM_AES_CBC, Buffer.alloc(16)),
    'AES-CBC of 960,000 bytes with a key of the token': () =>
      encrypt(ciphers[1], pkcs11js.CKM_AES_CBC, Buffer.alloc(16)),
    'a search among 13,000 objects': () => search({ type: pkcs11js.CKA_APPLICATION, value: 'none' }),
    'a search for all objects, those of the token too': () => search(),
    'a session with 13,000 objects that ends, and a new one': refill,
    'SHA3-512 of 1,000,000 bytes': () => digest(0x000002d0, large),
    '1,000,000 random bytes': () => pkcs11.C_GenerateRandom(session, Buffer.alloc(large)),
  };
};

const measureHere = async (): Promise<readonly Delay[]> => {
  const ours = await startOurs();
  Object.assign(process.env, ours.environment);
  const child = fork(import.meta.filename, ['wait'], { execArgv: [...process.execArgv] });
  try {
    const slow = slowCalls();
    const rows: Delay[] = [];
    const measure = async (during: string, times: number, call: () => unknown): Promise<void> => {
      await longestOf(child);
      const start = performance.now();
      for (let at = 0; at < times; at++) await call();
      const slowMs = (performance.now() - start) / times;
      rows.push({ during, slowMs, ...(await longestOf(child)) });
    };
    await measure('no other call', 1, () => new Promise((resolve) => setTimeout(resolve, 15_000)));
    for (const [during, call] of Object.entries(slow)) await measure(during, repeats, call);
    return rows;
  } finally {
    child.kill();
    await ours.close();
  }
};

/** In a process of its own, which loads the library. The first row is with no slow call. */
export const measureDelays = async (): Promise<readonly Delay[]> => {
  const child = fork(import.meta.filename, ['measure']);
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the measurement ended with ${code}`)));
  const [rows] = (await Promise.race([once(child, 'message'), ended])) as [readonly Delay[]];
  ended.catch(() => undefined);
  child.disconnect();
  return rows;
};

export const delaysText = (rows: readonly Delay[]): string =>
  ['| during | one such call | longest call to the agent | longest call to the service |', '|---|---|---|---|']
    .concat(
      rows.map(
        ({ during, slowMs, agentMs, serviceMs }) =>
          `| ${during} | ${slowMs.toFixed(1)} ms | ${agentMs.toFixed(1)} ms | ${serviceMs.toFixed(1)} ms |`,
      ),
    )
    .join('\n');

if (import.meta.main) {
  if (process.argv[2] === 'wait') await wait();
  else if (process.argv[2] === 'measure') process.send?.(await measureHere());
  else console.log(delaysText(await measureHere()));
}
