// Simulates one database process: loads the built PKCS#11 library with graphene-pk11 and uses its
// master key like a database. A separate process, because PKCS#11 calls block their thread.
//
// Commands arrive as JSON lines on standard input, one answer line each leaves on standard output.
// Data keys are made here and stay here: the answers hold comparisons and ciphertext lengths, never
// a key.

import { createInterface } from 'node:readline';
import graphene from 'graphene-pk11';

const { KeyGenMechanism, KeyType, Module, ObjectClass, SessionFlag } = graphene;

type Command =
  | { readonly do: 'open'; readonly pin: string }
  | { readonly do: 'generate'; readonly label: string }
  | { readonly do: 'find'; readonly label: string }
  | { readonly do: 'wrap'; readonly count: number }
  | { readonly do: 'unwrap' }
  | { readonly do: 'attributes' }
  | { readonly do: 'destroy' }
  | { readonly do: 'close' };

const iv = Buffer.alloc(16);
const dataKeys: Buffer[] = [];
const wrapped: Buffer[] = [];

const library = process.env.DKE_DEMO_LIBRARY;
if (library === undefined) throw new Error('DKE_DEMO_LIBRARY must name the built libdke_pkcs11.so');
const module = Module.load(library, 'DKE');
let session: graphene.Session | undefined;
let masterKey: graphene.SecretKey | undefined;

const openSession = (): graphene.Session => {
  if (session === undefined) throw new Error('open a session first');
  return session;
};
const currentKey = (): graphene.SecretKey => {
  if (masterKey === undefined) throw new Error('generate or find the master key first');
  return masterKey;
};

// Raw AES-CBC without padding, the form in which a database wraps its table and tablespace keys.
const mechanism = { name: 'AES_CBC', params: iv };
const encrypt = (data: Buffer): Buffer =>
  openSession().createCipher(mechanism, currentKey()).once(data, Buffer.alloc(data.length));
const decrypt = (data: Buffer): Buffer =>
  openSession().createDecipher(mechanism, currentKey()).once(data, Buffer.alloc(data.length));

const attributeNames = [
  'sensitive',
  'extractable',
  'alwaysSensitive',
  'neverExtractable',
  'local',
  'encrypt',
  'decrypt',
  'wrap',
  'unwrap',
] as const;

const handlers = {
  open: ({ pin }: { pin: string }) => {
    module.initialize();
    const slot = module.getSlots(0, true);
    const token = slot.getToken();
    session = slot.open(SessionFlag.SERIAL_SESSION | SessionFlag.RW_SESSION);
    session.login(pin);
    return { library: module.libraryDescription.trim(), token: token.label.trim() };
  },
  generate: ({ label }: { label: string }) => {
    masterKey = openSession()
      .generateKey(KeyGenMechanism.AES, {
        class: ObjectClass.SECRET_KEY,
        keyType: KeyType.AES,
        valueLen: 32,
        label,
        token: true,
        private: true,
        sensitive: true,
        extractable: false,
        modifiable: false,
        encrypt: true,
        decrypt: true,
        wrap: true,
        unwrap: true,
      })
      .toType<graphene.SecretKey>();
    return { handle: masterKey.handle.readUInt32LE(0) };
  },
  find: ({ label }: { label: string }) => {
    const found = openSession().find({ class: ObjectClass.SECRET_KEY, label });
    if (found.length > 0) masterKey = found.items(0).toType<graphene.SecretKey>();
    return { count: found.length };
  },
  wrap: ({ count }: { count: number }) => {
    for (let index = 0; index < count; index++) {
      const dataKey = openSession().generateRandom(32);
      dataKeys.push(dataKey);
      wrapped.push(encrypt(dataKey));
    }
    const differs = wrapped.every((blob, index) => blob.length === 32 && !blob.equals(dataKeys[index] ?? blob));
    return { wrapped: wrapped.length, differs };
  },
  unwrap: () => ({ equal: wrapped.filter((blob, index) => decrypt(blob).equals(dataKeys[index] ?? blob)).length }),
  attributes: () => {
    const values = Object.fromEntries(attributeNames.map((name) => [name, currentKey().getAttribute(name)]));
    let value = 'readable';
    try {
      currentKey().getAttribute('value');
    } catch (error) {
      value = error instanceof Error ? error.message : String(error);
    }
    return { ...values, label: currentKey().label, valueLen: currentKey().getAttribute('valueLen'), value };
  },
  destroy: () => {
    openSession().destroy(currentKey());
    return {};
  },
  close: () => {
    session?.close();
    module.finalize();
    return {};
  },
} satisfies { [Name in Command['do']]: (command: Extract<Command, { do: Name }>) => object };

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line) as Command;
  let answer: object;
  try {
    answer = { ok: true, ...handlers[command.do](command as never) };
  } catch (error) {
    answer = { ok: false, error: error instanceof Error ? error.message : String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
  if (command.do === 'close') break;
}
