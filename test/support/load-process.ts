// One of many database processes under load: repeats rounds of session-key and token-key work,
// checks every result with Node's own cryptography, and counts the return values of each call. It
// has the keys because it imported them.
//
// Standard input: one JSON line to begin, then the end of input to stop. Standard output: a JSON
// line of progress now and then, and one report at the end.
import { createCipheriv, createHash, randomBytes, randomInt } from 'node:crypto';
import { createInterface } from 'node:readline';
import pkcs11js from 'pkcs11js';
import { library, rvOf } from './pkcs11-host.ts';

export interface LoadOrder {
  /** The value of the token key that all processes share, hexadecimal, and its label. */
  readonly value: string;
  readonly label: string;
}
export interface LoadProgress {
  /** Rounds in which every call succeeded. */
  readonly whole: number;
}
export interface LoadReport {
  readonly calls: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Results that were wrong, as what and how: must be none. */
  readonly wrong: readonly string[];
  readonly rounds: number;
  readonly whole: number;
  /** Milliseconds of the longest call. */
  readonly longest: number;
  /** Open sessions according to the token, in addition to the process' own session. */
  readonly sessionsLeft: number;
}

const calls: Record<string, Record<string, number>> = {};
const wrong: string[] = [];
let longest = 0;
let whole = 0;
let rounds = 0;
let allSucceeded = true;

/** One call: its result, or undefined when it answered anything but CKR_OK. */
const call = <T>(name: string, work: () => T): T | undefined => {
  let result: T | undefined;
  const begin = performance.now();
  const rv = rvOf(() => {
    result = work();
  });
  longest = Math.max(longest, performance.now() - begin);
  calls[name] ??= {};
  const counts = calls[name];
  counts[rv] = (counts[rv] ?? 0) + 1;
  if (rv !== 'CKR_OK') allSucceeded = false;
  last = rv;
  return rv === 'CKR_OK' ? result : undefined;
};
let last = 'CKR_OK';

const cbc = (value: Buffer, iv: Buffer, plain: Buffer): Buffer => {
  const cipher = createCipheriv('aes-256-cbc', value, iv).setAutoPadding(false);
  return Buffer.concat([cipher.update(plain), cipher.final()]);
};

const pkcs11 = new pkcs11js.PKCS11();
pkcs11.load(library);

const work = async (order: LoadOrder, stopped: () => boolean): Promise<void> => {
  pkcs11.C_Initialize();
  const [slot] = pkcs11.C_GetSlotList(true);
  if (slot === undefined) throw new Error('no slot');
  const flags = pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION;
  const session = pkcs11.C_OpenSession(slot, flags);
  pkcs11.C_Login(session, pkcs11js.CKU_USER, '');
  const find = (name: string): readonly Buffer[] | undefined => {
    const begun = call(`C_FindObjectsInit ${name}`, () => {
      pkcs11.C_FindObjectsInit(session, [{ type: pkcs11js.CKA_LABEL, value: order.label }]);
      return true;
    });
    if (begun === undefined) return undefined;
    const found = call(`C_FindObjects ${name}`, () => pkcs11.C_FindObjects(session, 4));
    call(`C_FindObjectsFinal ${name}`, () => pkcs11.C_FindObjectsFinal(session));
    return found;
  };
  const [shared] = find('token') ?? [];
  if (shared === undefined) throw new Error('the shared key is not there');
  const sharedValue = Buffer.from(order.value, 'hex');

  let own: { readonly handle: Buffer; readonly value: Buffer } | undefined;
  const importOwn = (): typeof own => {
    const value = randomBytes(32);
    const handle = call('C_CreateObject session', () =>
      pkcs11.C_CreateObject(session, [
        { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
        { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
        { type: pkcs11js.CKA_VALUE, value },
        { type: pkcs11js.CKA_ENCRYPT, value: true },
        { type: pkcs11js.CKA_DECRYPT, value: true },
      ]),
    );
    return handle === undefined ? undefined : { handle, value };
  };

  /** Encrypts and decrypts; both results are compared with Node's. */
  const roundTrip = (where: string, handle: Buffer, value: Buffer): void => {
    const iv = randomBytes(16);
    const plain = randomBytes(16 * randomInt(1, 5));
    const expected = cbc(value, iv, plain);
    const mechanism = { mechanism: pkcs11js.CKM_AES_CBC, parameter: iv };
    const one = (direction: 'Encrypt' | 'Decrypt', input: Buffer, output: Buffer): void => {
      const begun = call(`C_${direction}Init ${where}`, () => {
        pkcs11[`C_${direction}Init`](session, mechanism, handle);
        return true;
      });
      if (begun === undefined) return;
      const result = call(`C_${direction} ${where}`, () =>
        pkcs11[`C_${direction}`](session, input, Buffer.alloc(input.length)),
      );
      if (result !== undefined && !result.equals(output)) wrong.push(`C_${direction} ${where}`);
    };
    one('Encrypt', plain, expected);
    one('Decrypt', expected, plain);
  };

  let lastRandom = '';
  while (!stopped()) {
    allSucceeded = true;
    rounds++;
    // A session key ends with its agent: then its handle is refused, and the process creates
    // another key.
    own ??= importOwn();
    if (own !== undefined) {
      roundTrip('session', own.handle, own.value);
      if (last === 'CKR_KEY_HANDLE_INVALID') own = undefined;
    }
    roundTrip('token', shared, sharedValue);

    const random = call('C_GenerateRandom', () => pkcs11.C_GenerateRandom(session, Buffer.alloc(32)).toString('hex'));
    if (random !== undefined && random === lastRandom) wrong.push('C_GenerateRandom repeats itself');
    lastRandom = random ?? lastRandom;

    const data = randomBytes(100);
    const digested = call('C_DigestInit', () => {
      pkcs11.C_DigestInit(session, { mechanism: pkcs11js.CKM_SHA256 });
      return true;
    });
    const digest = digested && call('C_Digest', () => pkcs11.C_Digest(session, data, Buffer.alloc(32)));
    if (digest && !digest.equals(createHash('sha256').update(data).digest())) wrong.push('C_Digest');

    if (rounds % 5 === 0) {
      const found = find('token');
      if (found !== undefined && (found.length !== 1 || found[0]?.equals(shared) !== true))
        wrong.push(`C_FindObjects found ${found.length}`);
    }
    if (rounds % 7 === 0) {
      const another = call('C_OpenSession', () => pkcs11.C_OpenSession(slot, flags));
      if (another !== undefined) call('C_CloseSession', () => pkcs11.C_CloseSession(another));
    }
    if (allSucceeded) whole++;
    if (rounds % 10 === 0) process.stdout.write(`${JSON.stringify({ whole })}\n`);
    // Lets the end of the input be seen.
    await new Promise((resolve) => setImmediate(resolve));
  }
  const sessionsLeft = pkcs11.C_GetTokenInfo(slot).sessionCount - 1;
  pkcs11.C_Finalize();
  const report: LoadReport = { calls, wrong, rounds, whole, longest, sessionsLeft };
  process.stdout.write(`${JSON.stringify({ report })}\n`);
};

let stopping = false;
const input = createInterface({ input: process.stdin });
input.once('close', () => {
  stopping = true;
});
input.once('line', (line) => {
  work(JSON.parse(line) as LoadOrder, () => stopping).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  });
});
