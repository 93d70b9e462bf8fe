// One database process: loads the built library and executes single Cryptoki calls on request, so
// that a test sees the exact return value of each. A separate process, because PKCS#11 calls block
// their thread.
//
// Commands arrive as JSON lines on standard input, one answer line each leaves on standard output.
// Bytes travel as hexadecimal text: they are a test's own.
import { createInterface } from 'node:readline';
import pkcs11js from 'pkcs11js';
import { CKA } from '../../provider/schema/attributes.ts';
import { library, rvOf } from './pkcs11-library.ts';

/** `session` is the position of a session among those opened; the first when absent. */
type On = { readonly session?: number };
export interface Commands {
  /** C_Initialize, a read-write session, C_Login. */
  open: { readonly pin: string };
  openSession: { readonly readOnly?: boolean };
  login: On & { readonly pin: string };
  logout: On;
  sessionInfo: On;
  /** The template of a database for a master key, on the token by default. */
  generate: On & { readonly label: string; readonly token?: boolean; readonly decrypt?: boolean };
  /** A key that was created elsewhere. */
  import: On & { readonly label: string; readonly value: string; readonly token?: boolean };
  createData: On & { readonly label: string; readonly value: string };
  find: On & { readonly label: string };
  attribute: On & { readonly handle: number; readonly name: keyof typeof CKA };
  setLabel: On & { readonly handle: number; readonly label: string };
  setFlag: On & { readonly handle: number; readonly name: keyof typeof CKA; readonly value: boolean };
  copy: On & { readonly handle: number; readonly label: string };
  /** A new session key, wrapped under a key of the token (AES key wrap). */
  wrap: On & { readonly handle: number };
  /** To a key of the session. */
  unwrap: On & { readonly handle: number; readonly data: string };
  /** Encrypts under AES-GCM with an IV of 12 bytes. */
  seal: On & { readonly handle: number; readonly iv: string; readonly data: string };
  encryptInit: On & { readonly handle: number; readonly iv: string };
  /** An Init of each key, in a session of its own, and no operation. */
  heartbeat: { readonly handles: readonly number[]; readonly iv: string };
  /** Ends the operation that encryptInit began. */
  encryptFinish: On & { readonly data: string };
  encrypt: On & { readonly handle: number; readonly iv: string; readonly data: string };
  decrypt: On & { readonly handle: number; readonly iv: string; readonly data: string };
  destroy: On & { readonly handle: number };
  random: On & { readonly length: number };
  finalize: object;
}
export type CommandName = keyof Commands;

const pkcs11 = new pkcs11js.PKCS11();
// Another build of the library, where a test is about that.
pkcs11.load(process.env.DKE_TEST_LIBRARY ?? library);
// Another user from here on, once everything is loaded: the package may lie where that user may not
// look.
const user = Number(process.env.DKE_TEST_USER ?? 'NaN');
if (!Number.isNaN(user)) {
  process.setgroups?.([]);
  process.setgid?.(user);
  process.setuid?.(user);
}
const sessions: Buffer[] = [];
let slot: Buffer | undefined;

const sessionOf = ({ session = 0 }: On): Buffer => {
  const found = sessions[session];
  if (found === undefined) throw new Error('open a session first');
  return found;
};
const handleOf = (number: number): Buffer => {
  const handle = Buffer.alloc(8);
  handle.writeBigUInt64LE(BigInt(number));
  return handle;
};
const numberOf = (handle: Buffer): number => Number(handle.readBigUInt64LE());
const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex');
const cbc = (iv: string) => ({ mechanism: pkcs11js.CKM_AES_CBC, parameter: bytes(iv) });
const newSession = (readOnly: boolean): number => {
  if (slot === undefined) throw new Error('open first');
  const flags = pkcs11js.CKF_SERIAL_SESSION | (readOnly ? 0 : pkcs11js.CKF_RW_SESSION);
  return sessions.push(pkcs11.C_OpenSession(slot, flags)) - 1;
};

const handlers: { [Name in CommandName]: (command: Commands[Name]) => object } = {
  open: ({ pin }) => {
    pkcs11.C_Initialize();
    slot = pkcs11.C_GetSlotList(true)[0];
    newSession(false);
    pkcs11.C_Login(sessionOf({}), pkcs11js.CKU_USER, pin);
    return {};
  },
  openSession: ({ readOnly = false }) => ({ session: newSession(readOnly) }),
  login: (command) => {
    pkcs11.C_Login(sessionOf(command), pkcs11js.CKU_USER, command.pin);
    return {};
  },
  logout: (command) => {
    pkcs11.C_Logout(sessionOf(command));
    return {};
  },
  sessionInfo: (command) => ({ state: pkcs11.C_GetSessionInfo(sessionOf(command)).state }),
  generate: (command) => ({
    handle: numberOf(
      pkcs11.C_GenerateKey(sessionOf(command), { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
        { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
        { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
        { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
        { type: pkcs11js.CKA_LABEL, value: command.label },
        { type: pkcs11js.CKA_TOKEN, value: command.token ?? true },
        { type: pkcs11js.CKA_PRIVATE, value: true },
        { type: pkcs11js.CKA_SENSITIVE, value: true },
        { type: pkcs11js.CKA_EXTRACTABLE, value: false },
        { type: pkcs11js.CKA_ENCRYPT, value: true },
        { type: pkcs11js.CKA_DECRYPT, value: command.decrypt ?? true },
        { type: pkcs11js.CKA_WRAP, value: true },
        { type: pkcs11js.CKA_UNWRAP, value: true },
      ]),
    ),
  }),
  import: (command) => ({
    handle: numberOf(
      pkcs11.C_CreateObject(sessionOf(command), [
        { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
        { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
        { type: pkcs11js.CKA_VALUE, value: bytes(command.value) },
        { type: pkcs11js.CKA_LABEL, value: command.label },
        { type: pkcs11js.CKA_TOKEN, value: command.token ?? true },
        { type: pkcs11js.CKA_SENSITIVE, value: true },
        { type: pkcs11js.CKA_ENCRYPT, value: true },
        { type: pkcs11js.CKA_DECRYPT, value: true },
      ]),
    ),
  }),
  createData: (command) => ({
    handle: numberOf(
      pkcs11.C_CreateObject(sessionOf(command), [
        { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_DATA },
        { type: pkcs11js.CKA_LABEL, value: command.label },
        { type: pkcs11js.CKA_VALUE, value: bytes(command.value) },
        { type: pkcs11js.CKA_TOKEN, value: true },
      ]),
    ),
  }),
  find: (command) => {
    const session = sessionOf(command);
    pkcs11.C_FindObjectsInit(session, [{ type: pkcs11js.CKA_LABEL, value: command.label }]);
    try {
      return { handles: pkcs11.C_FindObjects(session, 16).map(numberOf) };
    } finally {
      pkcs11.C_FindObjectsFinal(session);
    }
  },
  attribute: (command) => {
    const [attribute = { value: Buffer.alloc(0) }] = pkcs11.C_GetAttributeValue(
      sessionOf(command),
      handleOf(command.handle),
      [{ type: CKA[command.name] }],
    );
    return { value: (attribute.value as Buffer).toString('hex') };
  },
  setLabel: (command) => {
    pkcs11.C_SetAttributeValue(sessionOf(command), handleOf(command.handle), [
      { type: pkcs11js.CKA_LABEL, value: command.label },
    ]);
    return {};
  },
  setFlag: (command) => {
    pkcs11.C_SetAttributeValue(sessionOf(command), handleOf(command.handle), [
      { type: CKA[command.name], value: command.value },
    ]);
    return {};
  },
  copy: (command) => ({
    handle: numberOf(
      pkcs11.C_CopyObject(sessionOf(command), handleOf(command.handle), [
        { type: pkcs11js.CKA_LABEL, value: command.label },
      ]),
    ),
  }),
  wrap: (command) => {
    const session = sessionOf(command);
    const inner = pkcs11.C_GenerateKey(session, { mechanism: pkcs11js.CKM_AES_KEY_GEN }, [
      { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
      { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
      { type: pkcs11js.CKA_VALUE_LEN, value: 32 },
      { type: pkcs11js.CKA_SENSITIVE, value: false },
      { type: pkcs11js.CKA_EXTRACTABLE, value: true },
    ]);
    try {
      const mechanism = { mechanism: pkcs11js.CKM_AES_KEY_WRAP };
      return {
        data: pkcs11.C_WrapKey(session, mechanism, handleOf(command.handle), inner, Buffer.alloc(64)).toString('hex'),
      };
    } finally {
      pkcs11.C_DestroyObject(session, inner);
    }
  },
  unwrap: (command) => {
    const session = sessionOf(command);
    const made = pkcs11.C_UnwrapKey(
      session,
      { mechanism: pkcs11js.CKM_AES_KEY_WRAP },
      handleOf(command.handle),
      bytes(command.data),
      [
        { type: pkcs11js.CKA_CLASS, value: pkcs11js.CKO_SECRET_KEY },
        { type: pkcs11js.CKA_KEY_TYPE, value: pkcs11js.CKK_AES },
      ],
    );
    pkcs11.C_DestroyObject(session, made);
    return {};
  },
  seal: (command) => {
    const [iv, data] = [bytes(command.iv), bytes(command.data)];
    const parameter = { type: pkcs11js.CK_PARAMS_AES_GCM, iv, tagBits: 128 };
    const mechanism = { mechanism: pkcs11js.CKM_AES_GCM, parameter };
    pkcs11.C_EncryptInit(sessionOf(command), mechanism, handleOf(command.handle));
    return { data: pkcs11.C_Encrypt(sessionOf(command), data, Buffer.alloc(data.length + 16)).toString('hex') };
  },
  encryptInit: (command) => {
    pkcs11.C_EncryptInit(sessionOf(command), cbc(command.iv), handleOf(command.handle));
    return {};
  },
  heartbeat: ({ handles, iv }) => ({
    codes: handles.map((handle) => {
      const session = pkcs11.C_OpenSession(slot as Buffer, pkcs11js.CKF_SERIAL_SESSION);
      try {
        return rvOf(() => pkcs11.C_EncryptInit(session, cbc(iv), handleOf(handle)));
      } finally {
        pkcs11.C_CloseSession(session);
      }
    }),
  }),
  encryptFinish: (command) => {
    const data = bytes(command.data);
    return { data: pkcs11.C_Encrypt(sessionOf(command), data, Buffer.alloc(data.length)).toString('hex') };
  },
  encrypt: (command) => {
    handlers.encryptInit(command);
    return handlers.encryptFinish(command);
  },
  decrypt: (command) => {
    const data = bytes(command.data);
    pkcs11.C_DecryptInit(sessionOf(command), cbc(command.iv), handleOf(command.handle));
    return { data: pkcs11.C_Decrypt(sessionOf(command), data, Buffer.alloc(data.length)).toString('hex') };
  },
  destroy: (command) => {
    pkcs11.C_DestroyObject(sessionOf(command), handleOf(command.handle));
    return {};
  },
  random: (command) => ({
    data: pkcs11.C_GenerateRandom(sessionOf(command), Buffer.alloc(command.length)).toString('hex'),
  }),
  finalize: () => {
    pkcs11.C_Finalize();
    sessions.length = 0;
    return {};
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...command } = JSON.parse(line) as { readonly do: CommandName };
  let answer: object = {};
  const rv = rvOf(() => {
    answer = handlers[name](command as never);
  });
  process.stdout.write(`${JSON.stringify({ rv, ...answer })}\n`);
}
