// The agent starts and stops under a loaded library: the library starts it, loses it, and
// continues.
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pkcs11js from 'pkcs11js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CKS } from '../../provider/schema/constants.ts';
import { endProcess } from '../support/host.ts';
import { library, rvOf, type ServiceProcess, startService, writeConfig } from '../support/pkcs11-host.ts';

/** The process that listens on a socket. */
const listener = (socket: string): number => {
  const inode = readFileSync('/proc/net/unix', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .find((fields) => fields[7] === socket && fields[3] === '00010000')?.[6];
  if (inode === undefined) throw new Error(`no agent listens at ${socket}`);
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const links = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
      if (links.includes(`socket:[${inode}]`)) return Number(pid);
    } catch {
      // a process that has just ended, or whose descriptors are not ours to see
    }
  }
  throw new Error('the listener hides');
};

describe('an agent that was not started before', () => {
  const pkcs11 = new pkcs11js.PKCS11();
  let folder: string;
  let socket: string;
  let service: ServiceProcess;
  let session: Buffer;
  let key: Buffer;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'dke-restart-'));
    socket = join(folder, 'agent.sock');
    service = await startService();
    process.env.DKE_PKCS11_CONF = writeConfig(folder, service);
    process.env.DKE_PKCS11_SOCKET = socket;
    process.env.DKE_AGENT_LOG_DIR = join(folder, 'log');
    pkcs11.load(library);
    pkcs11.C_Initialize();
    const [slot] = pkcs11.C_GetSlotList(true);
    if (slot === undefined) throw new Error('no slot');
    session = pkcs11.C_OpenSession(slot, pkcs11js.CKF_SERIAL_SESSION | pkcs11js.CKF_RW_SESSION);
    pkcs11.C_Login(session, pkcs11js.CKU_USER, 'anything');
    key = pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
      { type: pkcs11js.CKA_LABEL, value: 'master' },
      { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
      { type: pkcs11js.CKA_TOKEN, value: true },
      { type: pkcs11js.CKA_ENCRYPT, value: true },
    ]);
  });
  afterAll(async () => {
    const agent = listener(socket);
    pkcs11.C_Finalize();
    pkcs11.close();
    await endProcess(agent);
    await service.stop();
    rmSync(folder, { recursive: true });
  });

  const encrypt = (): string => pkcs11.C_Encrypt(session, Buffer.alloc(48, 7), Buffer.alloc(48)).toString('hex');
  const init = (): void =>
    pkcs11.C_EncryptInit(session, { mechanism: pkcs11js.CKM_AES_CBC, parameter: Buffer.alloc(16, 1) }, key);

  test('is started by C_Initialize, in a session of its own and the child of no process', () => {
    const fields =
      readFileSync(`/proc/${listener(socket)}/stat`, 'utf8')
        .split(') ')[1]
        ?.split(' ') ?? [];
    expect(fields[1]).not.toBe(String(process.pid));
    expect(fields[3]).not.toBe(readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ')[3]);
  });

  test('has none of the host’s standard files', () => {
    const agent = listener(socket);
    expect([0, 1, 2].map((fd) => readlinkSync(`/proc/${agent}/fd/${fd}`))).toEqual(Array(3).fill('/dev/null'));
  });

  test('may die between two calls, and between C_EncryptInit and C_Encrypt: session, login and operation continue', () => {
    init();
    const before = encrypt();
    process.kill(listener(socket), 'SIGKILL');
    init();
    expect(encrypt()).toBe(before);
    init();
    process.kill(listener(socket), 'SIGKILL');
    expect(encrypt()).toBe(before);
    expect(pkcs11.C_GetSessionInfo(session).state).toBe(CKS.RW_USER_FUNCTIONS);
  });

  test('that dies takes the used IVs of token keys not along: another message under one of them is refused', () => {
    const parameter = { type: pkcs11js.CK_PARAMS_AES_GCM_v240, iv: Buffer.alloc(12, 9), ivBits: 96, tagBits: 128 };
    const gcm = { mechanism: pkcs11js.CKM_AES_GCM, parameter };
    const seal = (byte: number): string => {
      pkcs11.C_EncryptInit(session, gcm, key);
      return pkcs11.C_Encrypt(session, Buffer.alloc(48, byte), Buffer.alloc(64)).toString('hex');
    };
    const first = seal(1);
    expect(rvOf(() => seal(2))).toBe('CKR_MECHANISM_PARAM_INVALID');
    process.kill(listener(socket), 'SIGKILL');
    expect(rvOf(() => seal(2))).toBe('CKR_MECHANISM_PARAM_INVALID');
    process.kill(listener(socket), 'SIGKILL');
    // A call in progress is sent again, with the same result.
    expect(seal(1)).toBe(first);
  });

  test('that dies after a part has gone through takes the operation along', () => {
    init();
    pkcs11.C_EncryptUpdate(session, Buffer.alloc(16), Buffer.alloc(32));
    process.kill(listener(socket), 'SIGKILL');
    expect(() => pkcs11.C_EncryptFinal(session, Buffer.alloc(32))).toThrow('CKR_OPERATION_NOT_INITIALIZED');
    init();
    expect(encrypt()).toHaveLength(96);
  });
});
