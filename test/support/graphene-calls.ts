// The functions of a PKCS#11 library as graphene-pk11 calls them, under the names that pkcs11js
// has: the cases of test/conformance are written once, and run through graphene's modules, slots,
// sessions, objects, templates, mechanisms and operations. A call that graphene cannot express is
// made by pkcs11js: `pkcs11jsOnly` has the functions, and a row gives way, with its reason, before
// it has called the library. `ways` counts both. What crosses: values of the tests alone.
import * as graphene from 'graphene-pk11';
import pkcs11js from 'pkcs11js';
import { attributes } from '../../provider/schema/attributes.ts';

type Handle = pkcs11js.Handle;
type Library = pkcs11js.PKCS11;
type FunctionName = Extract<keyof Library, `C_${string}`>;

/** Functions that graphene does not have, and why. */
export const pkcs11jsOnly: Readonly<Record<string, string>> = {
  C_FindObjectsInit: 'graphene searches in one call, and cannot leave a search open',
  C_FindObjects: 'graphene searches in one call, and cannot leave a search open',
  C_FindObjectsFinal: 'graphene searches in one call, and cannot leave a search open',
  C_SeedRandom: 'graphene does not have it',
  C_DigestKey: 'graphene does not have it',
  C_SignRecoverInit: 'graphene does not have it',
  C_SignRecover: 'graphene does not have it',
  C_VerifyRecoverInit: 'graphene does not have it',
  C_VerifyRecover: 'graphene does not have it',
  C_DigestEncryptUpdate: 'graphene does not have the dual functions',
  C_DecryptDigestUpdate: 'graphene does not have the dual functions',
  C_SignEncryptUpdate: 'graphene does not have the dual functions',
  C_DecryptVerifyUpdate: 'graphene does not have the dual functions',
  C_WaitForSlotEvent: 'graphene does not have it',
};

/** Calls of functions that graphene has, which pkcs11js makes, and why. */
export const reasons = {
  buffer: {
    calls: 'calls with a short or an exact place for the answer',
    why: 'graphene chooses the place itself',
  },
  template: {
    calls: 'templates with a date, or with an attribute twice',
    why: 'graphene 2.3 sends no dates, and its templates have each name once',
  },
  private: {
    calls: 'generated keys of another class, and private keys with `CKA_PRIVATE` false',
    why: 'graphene adds `CKA_CLASS`, and `CKA_PRIVATE` true to a private key',
  },
  order: {
    calls: 'operations that were not begun, and sessions that do not exist',
    why: 'graphene has an operation only after its Init, and only sessions that it opened',
  },
  twice: { calls: 'a second `C_Initialize`', why: 'graphene ignores the refusal' },
  callback: { calls: 'forms with a callback', why: 'they belong to pkcs11js' },
  arguments: { calls: 'handles of another type', why: 'graphene cannot pass them' },
} as const;
type Reason = keyof typeof reasons;
class NotExpressed extends Error {
  readonly reason: Reason;
  constructor(reason: Reason) {
    super(reason);
    this.reason = reason;
  }
}
const unless = (expressed: boolean, reason: Reason): void => {
  if (!expressed) throw new NotExpressed(reason);
};

/** How often each function went each way: `graphene`, or a reason. */
export type Ways = Map<string, Map<Reason | 'graphene', number>>;

const names = new Map<number, string>();
for (const [name, { type, kind }] of Object.entries(attributes)) {
  const own = grapheneName(type);
  // Versions after 2.40 have attributes that graphene does not name: it lets programs add theirs.
  const added = `dke${name}`;
  if (own === undefined)
    graphene.registerAttribute(
      added,
      type,
      kind === 'boolean' || kind === 'byteBoolean' ? 'boolean' : kind === 'ulong' ? 'number' : 'buffer',
    );
  names.set(type, own ?? added);
}
function grapheneName(type: number): string | undefined {
  try {
    return Object.keys(graphene.Template.fromPkcs11([{ type, value: Buffer.from('2026010100000000') }]))[0];
  } catch {
    return undefined;
  }
}

const templateOf = (rows: pkcs11js.Template): graphene.ITemplate => {
  const template: graphene.ITemplate = {};
  for (const { type, value } of rows) {
    const name = names.get(type);
    unless(name !== undefined && !(name in template) && !/Date$/.test(name), 'template');
    template[name as string] = value;
  }
  return template;
};

/** A mechanism by its name, where graphene has one, with graphene's class for its parameter. */
const algorithmOf = ({ mechanism, parameter }: pkcs11js.Mechanism): graphene.MechanismType => {
  const name: unknown = graphene.MechanismEnum[mechanism];
  return {
    name: typeof name === 'string' ? name : mechanism,
    params: parametersOf(parameter),
  } as graphene.MechanismType;
};
type Structure = Readonly<Record<string, never>> & { readonly type: number };
const parametersOf = (parameter: unknown): unknown => {
  if (parameter === null || parameter === undefined || Buffer.isBuffer(parameter)) return parameter ?? null;
  const given = parameter as Structure;
  switch (given.type) {
    case pkcs11js.CK_PARAMS_RSA_PSS:
      return new graphene.RsaPssParams(given.hashAlg, given.mgf, given.saltLen);
    case pkcs11js.CK_PARAMS_RSA_OAEP:
      return new graphene.RsaOaepParams(given.hashAlg, given.mgf, given.sourceData ?? null);
    case pkcs11js.CK_PARAMS_EC_DH:
      return new graphene.EcdhParams(
        given.kdf as unknown as graphene.EcKdf,
        given.sharedData ?? null,
        given.publicData ?? null,
      );
    default:
      // Its classes for GCM and CCM compute what the tests of parameters set: the structure itself
      // passes.
      return parameter;
  }
};

/** Methods that its types keep for its own classes. */
const inside = (one: graphene.Module | graphene.Session) => one as unknown as { getInfo(): void };
const paddedAway = (text: string): string => text.replace(/[ \0]+$/, '');
/** What graphene shows must be what the library says. */
const compare = (shown: Readonly<Record<string, unknown>>, said: Readonly<Record<string, unknown>>): void => {
  for (const [name, value] of Object.entries(said)) {
    if (!(name in shown) || typeof value === 'object') continue;
    const same =
      typeof value === 'string' ? paddedAway(String(shown[name])) === paddedAway(value) : shown[name] === value;
    if (!same && name !== 'utcTime') throw new Error(`graphene shows ${name} as ${String(shown[name])}, not ${value}`);
  }
};

const invalid = (): Error =>
  Object.assign(new Error('CKR_SIGNATURE_INVALID'), { code: pkcs11js.CKR_SIGNATURE_INVALID });

/** An answer in the place that the caller gave for it. */
const into = (out: Buffer, answer: Buffer): Buffer => {
  answer.copy(out);
  return out.subarray(0, answer.length);
};
/** graphene's buffers for what a decryption has kept until its end. */
const longestRest = 1 << 16;

interface Running {
  cipher?: graphene.Cipher;
  decipher?: graphene.Decipher;
  digest?: graphene.Digest;
  sign?: graphene.Sign;
  verify?: graphene.Verify;
}
interface Known {
  readonly session: graphene.Session;
  readonly running: Running;
}

const rowsOf = (library: Library, known: Map<string, Known>) => {
  const module = new graphene.Module(library);
  let isInitialized = false;
  const slotOf = (slot: Handle): graphene.Slot => new graphene.Slot(slot, module, library);
  const find = (session: Handle): Known => {
    unless(Buffer.isBuffer(session), 'arguments');
    const one = known.get(session.toString('hex'));
    unless(one !== undefined, 'order');
    return one as Known;
  };
  const objectOf = ({ session }: Known, handle: Handle): graphene.SessionObject => {
    unless(Buffer.isBuffer(handle), 'arguments');
    return new graphene.SessionObject(handle, session, library);
  };
  const keyOf = (one: Known, handle: Handle): graphene.Key => objectOf(one, handle) as graphene.Key;
  const started = <Name extends keyof Running>(session: Handle, name: Name): NonNullable<Running[Name]> => {
    const operation = find(session).running[name];
    unless(operation !== undefined, 'order');
    return operation as NonNullable<Running[Name]>;
  };
  const roomy = (out: Buffer, least: number): void => unless(Buffer.isBuffer(out) && out.length >= least, 'buffer');

  return {
    C_Initialize: (options?: pkcs11js.InitializationOptions) => {
      unless(!isInitialized, 'twice');
      module.initialize(options);
      isInitialized = true;
    },
    C_Finalize: () => {
      module.finalize();
      isInitialized = false;
    },
    C_GetInfo: () => {
      const info = library.C_GetInfo();
      inside(module).getInfo();
      compare(module as unknown as Record<string, unknown>, { ...info });
      return info;
    },
    C_GetSlotList: (present?: boolean) => {
      const slots = module.getSlots(present);
      return Array.from({ length: slots.length }, (_, index) => slots.items(index).handle);
    },
    C_GetSlotInfo: (slot: Handle) => {
      const shown = slotOf(slot);
      const info = library.C_GetSlotInfo(slot);
      compare(shown as unknown as Record<string, unknown>, { ...info });
      return info;
    },
    C_GetTokenInfo: (slot: Handle) => {
      const shown = new graphene.Token(slot, library) as unknown as Record<string, unknown>;
      const { label, manufacturerID, model, flags, ...rest } = library.C_GetTokenInfo(slot);
      compare(shown, { label, manufacturerID, model, flags });
      return { label, manufacturerID, model, flags, ...rest };
    },
    C_InitToken: (slot: Handle, pin?: string, label?: string) => slotOf(slot).initToken(pin ?? '', label),
    C_GetMechanismList: (slot: Handle) => {
      const mechanisms = slotOf(slot).getMechanisms();
      return Array.from({ length: mechanisms.length }, (_, index) => mechanisms.items(index).type);
    },
    C_GetMechanismInfo: (slot: Handle, type: number) => {
      const { minKeySize, maxKeySize, flags } = new graphene.Mechanism(type, slot, slot, library);
      return { minKeySize, maxKeySize, flags };
    },
    C_OpenSession: (slot: Handle, flags: number) => {
      const session = slotOf(slot).open(flags);
      known.set(session.handle.toString('hex'), { session, running: {} });
      return session.handle;
    },
    C_CloseSession: (session: Handle) => find(session).session.close(),
    C_CloseAllSessions: (slot: Handle) => slotOf(slot).closeAll(),
    C_GetSessionInfo: (session: Handle) => {
      const one = find(session).session;
      inside(one).getInfo();
      const info = library.C_GetSessionInfo(session);
      compare(one as unknown as Record<string, unknown>, { ...info });
      return info;
    },
    C_Login: (session: Handle, user: number, pin?: string) => find(session).session.login(pin as string, user),
    C_Logout: (session: Handle) => find(session).session.logout(),
    C_InitPIN: (session: Handle, pin?: string) => find(session).session.initPin(pin as string),
    C_SetPIN: (session: Handle, before: string, after: string) => find(session).session.setPin(before, after),

    C_CreateObject: (session: Handle, template: pkcs11js.Template) =>
      find(session).session.create(templateOf(template)).handle,
    C_CopyObject: (session: Handle, object: Handle, template: pkcs11js.Template) => {
      const one = find(session);
      return objectOf(one, object).copy(templateOf(template)).handle;
    },
    C_DestroyObject: (session: Handle, object: Handle) => objectOf(find(session), object).destroy(),
    C_GetObjectSize: (session: Handle, object: Handle) => objectOf(find(session), object).size,
    C_GetAttributeValue: (session: Handle, object: Handle, template: pkcs11js.Template) => {
      const one = objectOf(find(session), object);
      const [row] = template;
      if (row !== undefined && template.length === 1)
        return [{ type: row.type, value: one.getAttribute(row.type) as unknown as Buffer }];
      const wanted = templateOf(template.map(({ type }) => ({ type, value: null as never })));
      const shown = one.getAttribute(wanted);
      const said = library.C_GetAttributeValue(session, object, template);
      compare(shown, { ...graphene.Template.fromPkcs11(said) });
      return said;
    },
    C_SetAttributeValue: (session: Handle, object: Handle, template: pkcs11js.Template) => {
      const one = objectOf(find(session), object);
      const [row] = template;
      if (row !== undefined && template.length === 1) one.setAttribute(row.type as never, row.value as never);
      else one.setAttribute(templateOf(template));
    },

    C_EncryptInit: (session: Handle, mechanism: pkcs11js.Mechanism, key: Handle) => {
      const one = find(session);
      one.running.cipher = one.session.createCipher(algorithmOf(mechanism), keyOf(one, key));
    },
    C_Encrypt: (session: Handle, data: Buffer, out: Buffer) => started(session, 'cipher').once(data, out),
    C_EncryptUpdate: (session: Handle, data: Buffer, out: Buffer) => {
      roomy(out, data.length + 16);
      return into(out, started(session, 'cipher').update(data));
    },
    C_EncryptFinal: (session: Handle, out: Buffer) => {
      roomy(out, 32);
      return into(out, started(session, 'cipher').final());
    },
    C_DecryptInit: (session: Handle, mechanism: pkcs11js.Mechanism, key: Handle) => {
      const one = find(session);
      one.running.decipher = one.session.createDecipher(algorithmOf(mechanism), keyOf(one, key), longestRest);
    },
    C_Decrypt: (session: Handle, data: Buffer, out: Buffer) => started(session, 'decipher').once(data, out),
    C_DecryptUpdate: (session: Handle, data: Buffer, out: Buffer) => {
      roomy(out, data.length + 16);
      return into(out, started(session, 'decipher').update(data));
    },
    C_DecryptFinal: (session: Handle, out: Buffer) => {
      roomy(out, 32);
      unless(out.length <= longestRest, 'buffer');
      return into(out, started(session, 'decipher').final());
    },
    C_DigestInit: (session: Handle, mechanism: pkcs11js.Mechanism) => {
      const one = find(session);
      one.running.digest = one.session.createDigest(algorithmOf(mechanism));
    },
    C_Digest: (session: Handle, data: Buffer, out: Buffer) => {
      roomy(out, 64);
      return into(out, started(session, 'digest').once(data));
    },
    C_DigestUpdate: (session: Handle, data: Buffer) => started(session, 'digest').update(data),
    C_DigestFinal: (session: Handle, out: Buffer) => {
      roomy(out, 64);
      return into(out, started(session, 'digest').final());
    },
    C_SignInit: (session: Handle, mechanism: pkcs11js.Mechanism, key: Handle) => {
      const one = find(session);
      one.running.sign = one.session.createSign(algorithmOf(mechanism), keyOf(one, key));
    },
    C_Sign: (session: Handle, data: Buffer, out: Buffer) => {
      roomy(out, 256);
      return into(out, started(session, 'sign').once(data));
    },
    C_SignUpdate: (session: Handle, data: Buffer) => started(session, 'sign').update(data),
    C_SignFinal: (session: Handle, out: Buffer) => {
      roomy(out, 256);
      return into(out, started(session, 'sign').final());
    },
    C_VerifyInit: (session: Handle, mechanism: pkcs11js.Mechanism, key: Handle) => {
      const one = find(session);
      one.running.verify = one.session.createVerify(algorithmOf(mechanism), keyOf(one, key));
    },
    C_Verify: (session: Handle, data: Buffer, signature: Buffer) => {
      if (!started(session, 'verify').once(data, signature)) throw invalid();
      return true;
    },
    C_VerifyUpdate: (session: Handle, data: Buffer) => started(session, 'verify').update(data),
    C_VerifyFinal: (session: Handle, signature: Buffer) => {
      if (!started(session, 'verify').final(signature)) throw invalid();
      return true;
    },

    C_GenerateKey: (session: Handle, mechanism: pkcs11js.Mechanism, template: pkcs11js.Template) => {
      const one = find(session);
      const wanted = templateOf(template);
      unless((wanted.class ?? graphene.ObjectClass.SECRET_KEY) === graphene.ObjectClass.SECRET_KEY, 'private');
      return one.session.generateKey(algorithmOf(mechanism), wanted).handle;
    },
    C_GenerateKeyPair: (
      session: Handle,
      mechanism: pkcs11js.Mechanism,
      publicTemplate: pkcs11js.Template,
      privateTemplate: pkcs11js.Template,
    ) => {
      const one = find(session);
      const [publicOnes, privateOnes] = [templateOf(publicTemplate), templateOf(privateTemplate)];
      const { PUBLIC_KEY, PRIVATE_KEY } = graphene.ObjectClass;
      const expressed =
        (publicOnes.class ?? PUBLIC_KEY) === PUBLIC_KEY &&
        (privateOnes.class ?? PRIVATE_KEY) === PRIVATE_KEY &&
        (privateOnes.private ?? true) === true;
      unless(expressed, 'private');
      const pair = one.session.generateKeyPair(algorithmOf(mechanism), publicOnes, privateOnes);
      return { publicKey: pair.publicKey.handle, privateKey: pair.privateKey.handle };
    },
    C_WrapKey: (session: Handle, mechanism: pkcs11js.Mechanism, by: Handle, key: Handle, out: Buffer) => {
      const one = find(session);
      roomy(out, 64);
      return into(out, one.session.wrapKey(algorithmOf(mechanism), keyOf(one, by), keyOf(one, key)));
    },
    C_UnwrapKey: (
      session: Handle,
      mechanism: pkcs11js.Mechanism,
      by: Handle,
      wrapped: Buffer,
      template: pkcs11js.Template,
    ) => {
      const one = find(session);
      return one.session.unwrapKey(algorithmOf(mechanism), keyOf(one, by), wrapped, templateOf(template)).handle;
    },
    C_DeriveKey: (session: Handle, mechanism: pkcs11js.Mechanism, base: Handle, template: pkcs11js.Template) => {
      const one = find(session);
      return one.session.deriveKey(algorithmOf(mechanism), keyOf(one, base), templateOf(template)).handle;
    },
    C_GenerateRandom: (session: Handle, out: Buffer) => into(out, find(session).session.generateRandom(out.length)),
  } satisfies { readonly [Name in FunctionName]?: (...given: never[]) => unknown };
};

/** Functions that graphene has: what the page says of the tests. */
export const grapheneFunctions: readonly string[] = Object.keys(rowsOf({} as Library, new Map()));

const searches = new WeakMap<Library, (session: Handle, template: pkcs11js.Template) => Handle[]>();

/** The library, with each function that graphene can express made by it. */
export const grapheneCalls = (library: Library): { readonly pkcs11: Library; readonly ways: Ways } => {
  const known = new Map<string, Known>();
  const ways: Ways = new Map();
  const count = (name: string, way: Reason | 'graphene'): void => {
    const counts = ways.get(name) ?? new Map<Reason | 'graphene', number>();
    counts.set(way, (counts.get(way) ?? 0) + 1);
    ways.set(name, counts);
  };
  const rows: Readonly<Record<string, (...given: never[]) => unknown>> = rowsOf(library, known);
  const pkcs11 = new Proxy(library, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function' || typeof name !== 'string') return member;
      const own = (...given: never[]): unknown => Reflect.apply(member, target, given);
      const row = rows[name];
      if (row === undefined) return own;
      return (...given: never[]): unknown => {
        try {
          unless(typeof given.at(-1) !== 'function', 'callback');
          const answer = row(...given);
          count(name, 'graphene');
          return answer;
        } catch (error) {
          if (!(error instanceof NotExpressed)) {
            count(name, 'graphene');
            throw error;
          }
          count(name, error.reason);
          return own(...given);
        }
      };
    },
  });
  searches.set(pkcs11, (session, template) => {
    const one = known.get(session.toString('hex'));
    unless(one !== undefined, 'order');
    const found = (one as Known).session.find(templateOf(template));
    count('search', 'graphene');
    return Array.from({ length: found.length }, (_, index) => found.items(index).handle);
  });
  return { pkcs11, ways };
};

/** All objects that a template finds: one call of graphene, where it drives the library. */
export const findAll = (pkcs11: Library, session: Handle, template: pkcs11js.Template, most = 10_000): Handle[] => {
  try {
    const search = searches.get(pkcs11);
    if (search !== undefined) return search(session, template);
  } catch (error) {
    if (!(error instanceof NotExpressed)) throw error;
  }
  pkcs11.C_FindObjectsInit(session, template);
  try {
    return pkcs11.C_FindObjects(session, most);
  } finally {
    pkcs11.C_FindObjectsFinal(session);
  }
};
