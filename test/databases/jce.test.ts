// The JCA provider DKE (provider/java) on its own: its AES/CBC, in any pieces, is that of OpenSSL
// under the same key; what it says when a key file is not as it was; and eight threads under two
// keys while the agent is killed. On our token and on SoftHSM2.
import { execFileSync, spawn } from 'node:child_process';
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pkcs11js from 'pkcs11js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { killProcess, processesWith } from '../support/host.ts';
import { jars, javaPresent, shortLived } from '../support/java.ts';
import { presentTokens, startTokens, type Token } from '../support/token.ts';
import { type Outcome, run } from '../support/tools.ts';

const inner = '--add-exports=jdk.crypto.cryptoki/sun.security.pkcs11.wrapper=ALL-UNNAMED';

/**
 * Whether the bytes are in any writable memory of a process. Fails where the process may not be
 * looked into.
 */
const memoryHolds = (pid: number, needle: Buffer): boolean => {
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  try {
    const maps = readFileSync(`/proc/${pid}/maps`, 'utf8').matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm);
    const part = Buffer.alloc(1 << 20);
    for (const [, from = '0', to = '0'] of maps) {
      const end = BigInt(`0x${to}`);
      // Parts overlap by a needle, which may lie across two.
      for (let at = BigInt(`0x${from}`); at < end; at += BigInt(part.length - needle.length)) {
        const length = Number(end - at < BigInt(part.length) ? end - at : BigInt(part.length));
        try {
          const got = readSync(memory, part, 0, length, at);
          if (part.subarray(0, got).includes(needle)) return true;
        } catch {
          // Reserved by Java and not in use.
        }
      }
    }
    return false;
  } finally {
    closeSync(memory);
  }
};

describe.runIf(javaPresent()).each(presentTokens)('dke-jce.jar with %s', (name) => {
  let token: Token;
  let keys: string;
  const command = (...args: string[]): Promise<Outcome> =>
    run(
      'java',
      [shortLived, `-Ddke.library=${token.module}`, `-Ddke.pin=${token.pin}`, '-jar', jars.jce, ...args],
      token,
    );
  const made = async (...args: string[]): Promise<string> => {
    const { code, out, complaints } = await command(...args);
    expect(code, complaints).toBe(0);
    return out.trim();
  };
  const options = (): string[] => [
    shortLived,
    inner,
    `-Djava.security.properties=${join(token.folder, 'dke.security')}`,
    `-Ddke.library=${token.module}`,
    `-Ddke.pin=${token.pin}`,
    '-cp',
    `${jars.jce}:${token.folder}`,
  ];
  /** The results of cases, one a line. */
  const cases = async (lines: readonly string[], more = [`-Ddke.keys=${keys}`]): Promise<readonly string[]> => {
    const input = `${lines.join('\n')}\n`;
    const { code, out, complaints } = await run('java', [...options(), ...more, 'JceCases'], { ...token, input });
    expect(code, complaints).toBe(0);
    return out.trimEnd().split('\n');
  };
  beforeAll(async () => {
    token = await startTokens[name]('jce');
    keys = join(token.folder, 'keys');
    mkdirSync(keys);
    writeFileSync(join(token.folder, 'dke.security'), 'security.provider.13=dke.jce.DKE\n');
    execFileSync('javac', ['-d', token.folder, join(import.meta.dirname, '../support/JceCases.java')]);
    expect(await made('new-master', 'jce master 1')).toBe('jce master 1');
  });
  afterAll(() => token.end());

  /** A data key with a known value: created outside, wrapped by the master key as `new` does it. */
  const knownKey = (value: Buffer): string => {
    Object.assign(process.env, token.environment);
    const pkcs11 = new pkcs11js.PKCS11();
    pkcs11.load(token.module);
    pkcs11.C_Initialize();
    const [slot] = pkcs11.C_GetSlotList(true);
    if (slot === undefined) throw new Error('no slot');
    const session = pkcs11.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION);
    pkcs11.C_Login(session, pkcs11js.CKU_USER, token.pin);
    pkcs11.C_FindObjectsInit(session, [{ type: pkcs11js.CKA_LABEL, value: 'jce master 1' }]);
    const [master] = pkcs11.C_FindObjects(session, 1);
    pkcs11.C_FindObjectsFinal(session);
    if (master === undefined) throw new Error('no master key');
    const known = pkcs11.C_CreateObject(session, [
      { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
      { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
      { type: pkcs11js.CKA_TOKEN, value: false },
      { type: pkcs11js.CKA_SENSITIVE, value: false },
      { type: pkcs11js.CKA_EXTRACTABLE, value: true },
      { type: pkcs11js.CKA_VALUE, value },
    ]);
    const aesKeyWrap = { mechanism: pkcs11js.CKM_AES_KEY_WRAP };
    const hex = pkcs11.C_WrapKey(session, aesKeyWrap, master, known, Buffer.alloc(64)).toString('hex');
    pkcs11.C_Finalize();
    pkcs11.close();
    const reference = randomBytes(16).toString('hex');
    const text = [
      'dke data key, format 1',
      `reference = ${reference}`,
      'master = jce master 1',
      `wrapped = ${hex}`,
      '',
    ];
    writeFileSync(join(keys, `${reference}.key`), text.join('\n'));
    return reference;
  };

  test('what it encrypts in any pieces is opened by it in any others, and every length of padding', async () => {
    const reference = await made('new', keys, 'jce master 1');
    const lengths = [0, 1, 15, 16, 17, 31, 32, 33, 255, 4096, 65_536, 65_552, 200_001];
    const inputs = lengths.map((length) => ({ iv: randomBytes(16).toString('hex'), data: randomBytes(length) }));
    const pieces = (length: number, step: number): string =>
      length < step ? '-' : Array.from({ length: Math.floor(length / step) }, () => step).join(',');
    const encrypt = (step: number): readonly string[] =>
      inputs.map(({ iv, data }) => {
        const parts = pieces(data.length, step);
        return `encrypt PKCS5Padding ${reference} ${iv} ${parts} ${data.toString('hex')}`;
      });
    const [whole, small, large] = [await cases(encrypt(1e9)), await cases(encrypt(1021)), await cases(encrypt(70_003))];
    expect(small).toEqual(whole);
    expect(large).toEqual(whole);
    const opened = await cases(
      inputs.map(({ iv }, at) => {
        const sealed = whole[at] ?? '';
        return `decrypt PKCS5Padding ${reference} ${iv} ${pieces(sealed.length / 2, 1009)} ${sealed}`;
      }),
    );
    expect(opened).toEqual(inputs.map(({ data }) => data.toString('hex')));
    expect(whole.map((hex) => hex.length / 2)).toEqual(lengths.map((length) => length + 16 - (length % 16)));
  });

  test('it is AES-256 in CBC mode with PKCS #5 padding, as OpenSSL has it', async () => {
    const value = randomBytes(32);
    const reference = knownKey(value);
    const [iv, data] = [randomBytes(16), randomBytes(1000)];
    const cipher = createCipheriv('aes-256-cbc', value, iv);
    const expected = Buffer.concat([cipher.update(data), cipher.final()]).toString('hex');
    const [sealed = ''] = await cases([
      `encrypt PKCS5Padding ${reference} ${iv.toString('hex')} 7,16,100 ${data.toString('hex')}`,
    ]);
    expect(sealed).toBe(expected);
    const decipher = createDecipheriv('aes-256-cbc', value, iv);
    expect(Buffer.concat([decipher.update(sealed, 'hex'), decipher.final()])).toEqual(data);
  });

  test('what was changed, cut off or given in place of a reference is told', async () => {
    const reference = await made('new', keys, 'jce master 1');
    const zero = '0'.repeat(32);
    const answers = await cases([
      `decrypt PKCS5Padding ${reference} ${zero} - ${'0'.repeat(64)}`,
      `decrypt NoPadding ${reference} ${zero} - 00`,
      `encrypt NoPadding ${reference} ${zero} - 00`,
      `encrypt NoPadding 0011 ${zero} - ${zero}`,
      `encrypt NoPadding ${reference} 00 - ${zero}`,
      `encrypt NoPadding ${zero} ${zero} - ${zero}`,
    ]);
    // One in 256 random blocks ends in a padding: this key has its own.
    expect(answers[0]).toMatch(/^(BadPaddingException: the data was encrypted with another key|[0-9a-f]+$)/);
    expect(answers.slice(1)).toEqual([
      'IllegalBlockSizeException: the length is not a multiple of 16 bytes',
      'IllegalBlockSizeException: the length is not a multiple of 16 bytes',
      'InvalidKeyException: pass the reference of a data key (32 hexadecimal digits) instead of a key',
      'InvalidAlgorithmParameterException: AES/CBC requires an initialization vector of 16 bytes',
      expect.stringContaining('InvalidKeyException: there is no data key'),
    ]);
  });

  test('a key file that was changed opens nothing, and says what it is', async () => {
    const reference = await made('new', keys, 'jce master 1');
    const path = join(keys, `${reference}.key`);
    const good = readFileSync(path, 'utf8');
    const zero = '0'.repeat(32);
    const messageOf = async (text: string): Promise<string> => {
      writeFileSync(path, text);
      return (await cases([`encrypt NoPadding ${reference} ${zero} - ${zero}`]))[0] ?? '';
    };
    const flipped = good.replace(/wrapped = ./, (head) => `wrapped = ${head.endsWith('0') ? '1' : '0'}`);
    expect(await messageOf(flipped)).toMatch(
      /^InvalidKeyException: data key [0-9a-f]{32} cannot be opened: master key "jce master 1" returned CKR_/,
    );
    expect(await messageOf(good.replace(reference, zero))).toContain(
      `it is the file of ${zero}; restore it from a backup`,
    );
    expect(await messageOf(good.replace('format 1', 'format 2'))).toContain(
      'its first line is not "dke data key, format 1"',
    );
    expect(await messageOf(good.replace(/^master.*\n/m, ''))).toContain('is not a data key: fields [');
    expect(await messageOf('')).toContain('is not a data key');
    expect(await messageOf(good)).toMatch(/^[0-9a-f]{32}$/);
  });

  test('what is missing at the start of Java is told', async () => {
    const line = `encrypt NoPadding ${'0'.repeat(32)} ${'0'.repeat(32)} - ${'0'.repeat(32)}`;
    expect((await cases([line], []))[0]).toContain('start java with -Ddke.keys=<folder>');
    const without = options().filter((option) => option !== inner);
    const { out } = await run('java', [...without, `-Ddke.keys=${keys}`, 'JceCases'], { ...token, input: line });
    expect(out).toContain('start java with --add-exports=jdk.crypto.cryptoki/sun.security.pkcs11.wrapper=ALL-UNNAMED');
    const wrong = await run(
      'java',
      [shortLived, '-Ddke.library=/nowhere.so', '-jar', jars.jce, 'new-master', 'x'],
      token,
    );
    expect(wrong.code).toBe(1);
    expect(wrong.complaints).toMatch(
      /^dke-jce: \/nowhere\.so cannot be loaded: .*; set its path with -Ddke\.library\n$/,
    );
  });

  /** A Java process that encrypts and decrypts in eight threads until it is stopped. */
  const startThreads = async (one: string, other: string) => {
    const child = spawn('java', [...options(), `-Ddke.keys=${keys}`, 'JceCases'], {
      env: { ...process.env, ...token.environment },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const gone = once(child, 'close');
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const next = async (): Promise<string> => String((await lines.next()).value);
    child.stdin.write(`threads ${one} ${other}\n`);
    expect(await next()).toMatch(/^started/);
    return {
      child,
      /** Asks until so many round trips more are done. */
      progress: async (by: number): Promise<void> => {
        let first: number | undefined;
        for (;;) {
          child.stdin.write('at\n');
          const done = Number((await next()).split(' ')[1]);
          first ??= done;
          if (done >= first + by) return;
        }
      },
      end: async (): Promise<string> => {
        child.stdin.end();
        const last = await next();
        await gone;
        return last;
      },
    };
  };

  test('eight threads under two keys never meet the other key, also when the agent is killed', async () => {
    const [one, other] = [await made('new', keys, 'jce master 1'), await made('new', keys, 'jce master 1')];
    const { progress, end } = await startThreads(one, other);
    await progress(100);
    for (const _ of name === 'DKE' ? [1, 2] : []) {
      const socket = token.environment.DKE_PKCS11_SOCKET ?? '';
      for (const [pid] of processesWith(socket)) killProcess(pid);
      await progress(100);
    }
    expect(await end()).toBe('right true, wrong 0');
  });

  test.runIf(name === 'DKE')('the memory of a Java that encrypts has the reference, and nowhere the key', async () => {
    const value = randomBytes(32);
    const reference = knownKey(value);
    const other = await made('new', keys, 'jce master 1');
    const { child, progress, end } = await startThreads(reference, other);
    await progress(100);
    expect(memoryHolds(child.pid ?? 0, Buffer.from(reference, 'hex'))).toBe(true);
    expect(memoryHolds(child.pid ?? 0, value)).toBe(false);
    expect(memoryHolds(child.pid ?? 0, Buffer.from(value.toString('hex')))).toBe(false);
    await end();
  });
});
