// Writes docs/conformance.md: every function of the lists and every mechanism that has a name here, with what becomes of it. What is
// carried comes from the tables of the code; what the standard has comes from the table here, so that whatever it has and we
// refuse needs a reason. node test/support/conformance-page.ts
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { handlers } from '../../provider/client/dispatch.ts';
import type { MechanismRow } from '../../provider/client/operations/mechanism-row.ts';
import { findMechanism } from '../../provider/client/operations/mechanisms.ts';
import { type CallName, calls, stubs } from '../../provider/schema/calls.ts';
import { CKF } from '../../provider/schema/constants.ts';
import { CKM, type MechanismName, mechanisms } from '../../provider/schema/mechanisms.ts';

/** What a mechanism can be used for: the function, and its flag in CK_MECHANISM_INFO. */
export const uses = {
  generate: { flag: CKF.GENERATE, title: 'GenerateKey' },
  pair: { flag: CKF.GENERATE_KEY_PAIR, title: 'GenerateKeyPair' },
  encrypt: { flag: CKF.ENCRYPT, title: 'Encrypt' },
  decrypt: { flag: CKF.DECRYPT, title: 'Decrypt' },
  encryptMessage: { flag: CKF.MESSAGE_ENCRYPT, title: 'Encrypt-Message' },
  decryptMessage: { flag: CKF.MESSAGE_DECRYPT, title: 'Decrypt-Message' },
  digest: { flag: CKF.DIGEST, title: 'Digest' },
  sign: { flag: CKF.SIGN, title: 'Sign' },
  signRecover: { flag: CKF.SIGN_RECOVER, title: 'Sign-Recover' },
  verify: { flag: CKF.VERIFY, title: 'Verify' },
  verifyRecover: { flag: CKF.VERIFY_RECOVER, title: 'Verify-Recover' },
  wrap: { flag: CKF.WRAP, title: 'WrapKey' },
  unwrap: { flag: CKF.UNWRAP, title: 'UnwrapKey' },
  derive: { flag: CKF.DERIVE, title: 'DeriveKey' },
} as const;
export type Use = keyof typeof uses;
const useNames = Object.keys(uses) as Use[];

const ciphers = ['encrypt', 'decrypt', 'wrap', 'unwrap'] as const;
const signatures = ['sign', 'verify'] as const;
const messages = ['encryptMessage', 'decryptMessage'] as const;

/** The standard's tables "mechanisms against functions" (mechanisms 2.40 section 2, 3.0 section 6), by name; the first that fits. */
const standard: readonly (readonly [RegExp, readonly Use[]])[] = [
  [/_KEY_PAIR_GEN$/, ['pair']],
  [/_KEY_GEN$/, ['generate']],
  [/^RSA_(PKCS|X_509)$/, [...ciphers, ...signatures, 'signRecover', 'verifyRecover']],
  [/^RSA_PKCS_OAEP$/, ciphers],
  [/_RSA_PKCS$|_PSS$|^ECDSA|^EDDSA$/, signatures],
  [/_HMAC$|_HMAC_GENERAL$|^AES_C?MAC|^DES3_CMAC/, signatures],
  [/_DERIVE$|_ENCRYPT_DATA$|^SP800_108_|^HKDF_DATA$|^CONCATENATE_|^XOR_BASE_|^EXTRACT_KEY_/, ['derive']],
  [/^AES_[GC]CM$/, [...ciphers, ...messages]],
  [/^(AES|DES3)_/, ciphers],
  [/^(MD5|SHA)/, ['digest']],
];
export const standardUses = (name: MechanismName): readonly Use[] =>
  standard.find(([pattern]) => pattern.test(name))?.[1] ?? [];

/** Why what the standard has is not carried: by name and use, the first that fits. */
const reasons: readonly (readonly [RegExp, readonly Use[], string])[] = [
  [
    /^RSA_PKCS$/,
    ciphers,
    'A token that reports whether PKCS #1 v1.5 padding is valid decrypts for anyone who asks often enough. Use `CKM_RSA_PKCS_OAEP`. For programs that cannot, the switch `rsa-pkcs1-encryption` permits encryption and decryption ([compatibility](compatibility.md)).',
  ],
  [
    /^RSA_X_509$/,
    useNames,
    'RSA without padding signs and decrypts values that an attacker can compute from other messages.',
  ],
  [
    /^SHA1_RSA|^ECDSA_SHA1$/,
    ['sign'],
    'SHA-1 is broken for signatures: they are verified, but not made without the switch `sha1-signatures` ([compatibility](compatibility.md)).',
  ],
  [
    /^AES_(ECB|CTR|GCM|CCM)$/,
    ['wrap', 'unwrap'],
    'Keys are wrapped by what notices changes; and a key that encrypts with the same stream or blocks would open what it wrapped.',
  ],
  [
    /^AES_KEY_WRAP/,
    ['encrypt', 'decrypt'],
    'What wraps keys does not decrypt data: the two together take sensitive keys out.',
  ],
  [/^AES_CCM$/, messages, 'The message functions are for AES-GCM.'],
  [/^AES_(CTS|OFB|CFB)/, useNames, 'No database or tool that we know of asks for it.'],
  [/^SP800_108_DOUBLE_PIPELINE/, useNames, 'No database or tool that we know of asks for it.'],
  [/^AES_MAC/, useNames, 'CBC-MAC is forged when lengths differ. `CKM_AES_CMAC` is there.'],
  [/^MD5$/, useNames, 'Broken.'],
  [/^DES3_/, useNames, 'Withdrawn (SP 800-131A): blocks of 64 bits repeat too soon.'],
  [
    /^CONCATENATE_|^XOR_BASE_|^EXTRACT_KEY_/,
    ['derive'],
    'They derive keys that are related to their base: parts of it, or the base with known bytes beside or over it. With them a sensitive key is found piece by piece. `CKM_HKDF_DERIVE` is there.',
  ],
  [/^DH_/, useNames, 'Keys of this type are not carried. `CKM_ECDH1_DERIVE` is there.'],
];

export const isCarried = (name: MechanismName, use: Use): boolean =>
  ((findMechanism(CKM[name])?.flags ?? 0) & uses[use].flag) !== 0;

/** Whether only applications with a compatibility switch have this use. */
const needsSwitch = (name: MechanismName, use: Use): boolean => {
  const row = findMechanism(CKM[name]);
  return row !== undefined && !isCarried(name, use) && ((row.switched?.flags ?? 0) & uses[use].flag) !== 0;
};

/** Why a use that the standard has is refused; undefined when no reason is written. */
export const reasonFor = (name: MechanismName, use: Use): string | undefined =>
  reasons.find(([pattern, of]) => pattern.test(name) && of.includes(use))?.[2];

/** Whether data comes in one piece only. */
const inOnePiece = (row: MechanismRow | undefined, use: Use): boolean => {
  if (use === 'signRecover' || use === 'verifyRecover') return true;
  if (use === 'encrypt' || use === 'decrypt') return row?.rsaEncryption !== undefined;
  return (use === 'sign' || use === 'verify') && row?.signature?.digest === null && row.signature.collects !== true;
};

const cell = (name: MechanismName, use: Use): string => {
  if (needsSwitch(name, use)) return '○';
  if (isCarried(name, use)) return inOnePiece(findMechanism(CKM[name]), use) ? '1' : '●';
  return standardUses(name).includes(use) ? '–' : '';
};

const names = Object.keys(mechanisms) as MechanismName[];

const mechanismMatrix = (): string => {
  const lines = names.map((name) => `| \`CKM_${name}\` | ${useNames.map((use) => cell(name, use)).join(' | ')} |`);
  const titles = useNames.map((use) => uses[use].title).join(' | ');
  return [`| mechanism | ${titles} |`, `|---|${':-:|'.repeat(useNames.length)}`, ...lines].join('\n');
};

const refusals = (): string => {
  const grouped = new Map<string, string[]>();
  for (const name of names) {
    const refused = standardUses(name).filter((use) => !isCarried(name, use));
    for (const reason of new Set(refused.map((use) => reasonFor(name, use) ?? ''))) {
      const of = refused.filter((use) => (reasonFor(name, use) ?? '') === reason);
      const what = of.length === standardUses(name).length ? '' : ` (${of.map((use) => uses[use].title).join(', ')})`;
      grouped.set(reason, [...(grouped.get(reason) ?? []), `\`CKM_${name}\`${what}`]);
    }
  }
  const lines = [...grouped].map(([reason, of]) => `| ${of.join(', ')} | ${reason} |`);
  return ['| not carried | why |', '|---|---|', ...lines].join('\n');
};

/** Where a mechanism that is carried does not do all that the standard has. */
const limits: readonly (readonly [string, string, string])[] = [
  [
    '`CKM_EDDSA`',
    '`CK_EDDSA_PARAMS` are `CKR_MECHANISM_PARAM_INVALID`, but for Ed448 without prehash and context',
    'They ask for Ed25519ctx, Ed25519ph, Ed448ph (3.1, section 6.3.15) or Ed448 with a context, which the OpenSSL 3.0 in the core does not have. Without parameters the signature is Ed25519 or Ed448.',
  ],
  [
    '`CKM_EDDSA`',
    'parts of more than 1 MB in all are refused',
    'EdDSA reads the message twice, so the agent collects its parts.',
  ],
  [
    '`CKM_SP800_108_…_KDF`',
    'additional derived keys, and more than 4096 bytes of data or IV, are refused',
    'One call derives one key.',
  ],
  ['`CKM_AES_GCM`', 'tags below 96 bits are refused', 'They forge too easily (SP 800-38D, section 5.2.1.2).'],
  ['`CKM_AES_GCM`', 'IVs above 128 bytes are refused', 'OpenSSL does not take them.'],
  [
    '`CKM_AES_KEY_WRAP`',
    'a key below 16 bytes is padded with zeros to 16, not to 8',
    'RFC 3394 wraps no less than 16 bytes.',
  ],
  ['`…_GENERAL` (Verify)', 'MACs below 4 bytes are refused', 'They are found by trying (SP 800-107, section 5.3.3).'],
];

const limitTable = (): string =>
  ['| mechanism | difference | why |', '|---|---|---|', ...limits.map((each) => `| ${each.join(' | ')} |`)].join('\n');

/** What a function does that the words carried and refused do not say. */
const remarks: Partial<Record<keyof typeof calls | keyof typeof stubs, string>> = {
  C_InitToken: 'the service makes the token',
  C_InitPIN: 'no PIN is kept',
  C_SetPIN: 'no PIN is kept',
  C_GetOperationState: 'what runs in the agent or the service is not taken out of it',
  C_SetOperationState: 'what runs in the agent or the service is not taken out of it',
  C_Login: 'CKU_USER with any PIN',
  C_LoginUser: 'CKU_USER with any PIN and any name',
  C_DigestKey: 'always `CKR_KEY_INDIGESTIBLE`: a digest of a key is a way to test guesses at it',
  C_WaitForSlotEvent: '`CKR_NO_EVENT`; without CKF_DONT_BLOCK `CKR_FUNCTION_NOT_SUPPORTED`',
  C_GetFunctionStatus: 'always `CKR_FUNCTION_NOT_PARALLEL`',
  C_CancelFunction: 'always `CKR_FUNCTION_NOT_PARALLEL`',
  C_SeedRandom: 'taken, and changes nothing: the system seeds the generator',
  C_MessageSignInit: 'no mechanism signs message by message',
  C_MessageVerifyInit: 'no mechanism verifies message by message',
  C_EncapsulateKey: 'no mechanism encapsulates',
  C_DecapsulateKey: 'no mechanism encapsulates',
  C_VerifySignatureInit: 'no mechanism needs the signature before the data',
  C_GetSessionValidationFlags: 'the token is not validated',
  C_AsyncComplete: 'nothing goes on after a call',
  C_WrapKeyAuthenticated: 'no mechanism wraps with associated data',
  C_UnwrapKeyAuthenticated: 'no mechanism wraps with associated data',
};

type Function = keyof typeof calls | keyof typeof stubs;
const functions: readonly (readonly [Function, '2.40' | '3.0' | '3.2'])[] = [
  ...Object.entries(calls).map(([name, row]) => [name as Function, 'since' in row ? row.since : '2.40'] as const),
  ...Object.entries(stubs).map(([name, { since }]) => [name as Function, since] as const),
];

/** Who answers a function. */
export const statusOf = (name: Function): 'library' | 'agent' | 'refused' => {
  if (name in stubs) return 'refused';
  const row = calls[name as keyof typeof calls];
  if ('local' in row || name === 'C_GetInfo' || name === 'C_WaitForSlotEvent') return 'library';
  return handlers[name as CallName] === undefined ? 'refused' : 'agent';
};

const statuses = {
  agent: 'carried',
  library: 'carried, by the library alone',
  refused: '`CKR_FUNCTION_NOT_SUPPORTED`',
} as const;

const functionTable = (since: '2.40' | '3.0' | '3.2'): string => {
  const lines = functions
    .filter(([, of]) => of === since)
    .map(([name]) => `| \`${name}\` | ${statuses[statusOf(name)]} | ${remarks[name] ?? ''} |`);
  return ['| function | status | |', '|---|---|---|', ...lines].join('\n');
};

const count = (which: (status: string) => boolean): number =>
  functions.filter(([name]) => which(statusOf(name))).length;

export const conformancePage = (): string => `# Conformance

What \`libdke_pkcs11.so\` makes of every function of PKCS#11 2.40, 3.0 and 3.2, and of every mechanism that it has a name for. This
page is written from the tables of the code (\`node test/support/conformance-page.ts\`), and the tests start every use of every
mechanism, with keys of the session and of the token, to see that it is as it says here. How the functions behave is in
[the PKCS#11 library](pkcs11.md); where single rules of the standard are kept otherwise, in [differences](differences.md).

## Functions

${count((status) => status !== 'refused')} of ${functions.length} functions are carried. All of them are in the lists, so
that a caller finds a function wherever the standard puts one.

### PKCS#11 2.40

${functionTable('2.40')}

### PKCS#11 3.0

${functionTable('3.0')}

### PKCS#11 3.2

${functionTable('3.2')}

## Functions and mechanisms

● carried, whole and in parts, with keys of the session and of the token. 1: the same, with data in one piece, as the standard has it.
○ only for applications with a [compatibility switch](compatibility.md); \`CKR_MECHANISM_INVALID\` otherwise. – not carried, although the
standard has it: \`CKR_MECHANISM_INVALID\`; the reasons are below. Nothing: the standard does not have it either.

${mechanismMatrix()}

${refusals()}

### Parameters and data

Where mechanisms that are carried do not do all that the standard has:

${limitTable()}
`;

if (process.argv[1] === import.meta.filename) {
  writeFileSync(join(import.meta.dirname, '../../docs/conformance.md'), conformancePage());
}
