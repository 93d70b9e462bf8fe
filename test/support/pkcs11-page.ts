// The tables of docs/pkcs11.md as the code has them: a test compares the page with these.

import { newObject } from '../../provider/agent/objects/template.ts';
import type { MechanismRow } from '../../provider/agent/operations/mechanism-row.ts';
import { mechanismRows } from '../../provider/agent/operations/mechanisms.ts';
import { handlers } from '../../provider/agent/threads/dispatch.ts';
import { CKA } from '../../provider/schema/attributes.ts';
import { type CallName, calls } from '../../provider/schema/calls.ts';
import { CKF, CKK, CKO } from '../../provider/schema/constants.ts';
import { mechanismName } from '../../provider/schema/mechanisms.ts';
import { template } from './template.ts';

/** Where the standard treats a function, by the first one of each chapter. */
const chapters: Readonly<Record<string, string>> = {
  C_Initialize: 'general purpose',
  C_GetSlotList: 'slots and tokens',
  C_OpenSession: 'sessions',
  C_CreateObject: 'objects',
  C_EncryptInit: 'encryption',
  C_DecryptInit: 'decryption',
  C_DigestInit: 'digests',
  C_SignInit: 'signatures and MACs',
  C_VerifyInit: 'verification',
  C_DigestEncryptUpdate: 'dual functions',
  C_GenerateKey: 'keys',
  C_SeedRandom: 'random numbers',
  C_GetFunctionStatus: 'parallel functions',
  C_WaitForSlotEvent: 'events',
  C_GetInterfaceList: '3.0',
  C_MessageEncryptInit: '3.0, messages',
};

/**
 * Functions by chapter, those only that do something: the library's own, and those that the agent
 * has a handler for.
 */
export const functionTable = (): string => {
  const carried = new Map<string, string[]>();
  let chapter = '';
  for (const [name, row] of Object.entries(calls)) {
    chapter = chapters[name] ?? chapter;
    const local = 'local' in row;
    if (!local && handlers[name as CallName] === undefined) continue;
    carried.set(chapter, [...(carried.get(chapter) ?? []), `\`${name}\``]);
  }
  const lines = [...carried].map(([each, names]) => `| ${each} | ${names.join(', ')} |`);
  return ['| chapter | functions |', '|---|---|', ...lines].join('\n');
};

const uses = {
  generate: CKF.GENERATE,
  'generate pair': CKF.GENERATE_KEY_PAIR,
  encrypt: CKF.ENCRYPT,
  decrypt: CKF.DECRYPT,
  digest: CKF.DIGEST,
  sign: CKF.SIGN,
  'sign recover': CKF.SIGN_RECOVER,
  verify: CKF.VERIFY,
  'verify recover': CKF.VERIFY_RECOVER,
  wrap: CKF.WRAP,
  unwrap: CKF.UNWRAP,
  derive: CKF.DERIVE,
  'encrypt messages': CKF.MESSAGE_ENCRYPT,
  'decrypt messages': CKF.MESSAGE_DECRYPT,
} as const;

const keyNames: ReadonlyMap<number, string> = new Map(Object.entries(CKK).map(([name, type]) => [type, name]));

const onToken = (row: MechanismRow): string => (row.digest === undefined ? 'yes' : '');

export const mechanismTable = (): string => {
  const lines = mechanismRows.map((row) => {
    const { type, flags, keyTypes, minKeySize, maxKeySize } = row;
    const does = Object.entries(uses).flatMap(([name, flag]) => ((flags & flag) === 0 ? [] : [name]));
    const keys = keyTypes.map((each) => keyNames.get(each) ?? '').join(', ');
    const sizes =
      maxKeySize === 0 ? '' : minKeySize === maxKeySize ? `${minKeySize}` : `${minKeySize} to ${maxKeySize}`;
    return `| \`${mechanismName(type)}\` | ${does.join(', ')} | ${keys} | ${sizes} | ${onToken(row)} |`;
  });
  return ['| mechanism | does | keys | sizes | token |', '|---|---|---|---|---|', ...lines].join('\n');
};

const usages = {
  ENCRYPT: CKA.ENCRYPT,
  DECRYPT: CKA.DECRYPT,
  SIGN: CKA.SIGN,
  SIGN_RECOVER: CKA.SIGN_RECOVER,
  VERIFY: CKA.VERIFY,
  VERIFY_RECOVER: CKA.VERIFY_RECOVER,
  WRAP: CKA.WRAP,
  UNWRAP: CKA.UNWRAP,
  DERIVE: CKA.DERIVE,
} as const;
const classes = { 'public key': CKO.PUBLIC_KEY, 'private key': CKO.PRIVATE_KEY, 'secret key': CKO.SECRET_KEY } as const;
const pairTypes = ['RSA', 'EC', 'EC_EDWARDS', 'EC_MONTGOMERY'] as const;
const secretTypes = ['AES', 'GENERIC_SECRET', 'SHA256_HMAC', 'HKDF'] as const;

/** The default of every usage attribute of a key. */
export const usageTable = (): string => {
  const line = (name: keyof typeof classes, type: keyof typeof CKK): string => {
    const asked = template([CKA.CLASS, classes[name]], [CKA.KEY_TYPE, CKK[type]]);
    const { attributes } = newObject(asked, { how: 'unwrap' }, true);
    const cells = Object.values(usages).map((usage) => {
      const value = attributes.get(usage);
      return value === undefined ? '' : value ? 'true' : 'false';
    });
    return `| ${name}, ${type === 'SHA256_HMAC' ? 'any HMAC type' : `\`CKK_${type}\``} | ${cells.join(' | ')} |`;
  };
  const lines = [
    ...pairTypes.flatMap((type) => [line('public key', type), line('private key', type)]),
    ...secretTypes.map((type) => line('secret key', type)),
  ];
  const titles = Object.keys(usages).map((name) => `\`${name}\``);
  return [`| key | ${titles.join(' | ')} |`, `|---|${':-:|'.repeat(titles.length)}`, ...lines].join('\n');
};
