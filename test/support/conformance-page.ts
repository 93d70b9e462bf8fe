// Writes docs/conformance.md: every function of the lists and every mechanism that has a name here,
// with what happens to it. What is carried comes from the tables of the code; what the standard has
// comes from the table here, so that whatever it has and we refuse needs a reason. node
// test/support/conformance-page.ts
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MechanismRow } from '../../provider/agent/operations/mechanism-row.ts';
import { findMechanism } from '../../provider/agent/operations/mechanisms.ts';
import { handlers } from '../../provider/agent/threads/dispatch.ts';
import { type CallName, calls, stubs } from '../../provider/schema/calls.ts';
import { CKF } from '../../provider/schema/constants.ts';
import { CKM, type MechanismName, mechanisms } from '../../provider/schema/mechanisms.ts';
import { grapheneFunctions, reasons as grapheneReasons, pkcs11jsOnly } from './graphene-calls.ts';

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

/**
 * The standard's tables "mechanisms against functions" (mechanisms 2.40 section 2, 3.0 section 6),
 * by name; the first that fits.
 */
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
    'A token that reports whether PKCS #1 v1.5 padding is valid can be misused to decrypt messages. Use `CKM_RSA_PKCS_OAEP`. For programs that cannot, the switch `rsa-pkcs1-encryption` permits encryption and decryption ([compatibility](compatibility.md)).',
  ],
  [
    /^RSA_X_509$/,
    useNames,
    'With RSA without padding, an attacker can get signatures and plaintexts by computing values from other messages.',
  ],
  [
    /^SHA1_RSA|^ECDSA_SHA1$/,
    ['sign'],
    'SHA-1 is broken for signatures. DKE verifies them, but creates them only with the switch `sha1-signatures` ([compatibility](compatibility.md)).',
  ],
  [
    /^AES_(ECB|CTR|GCM|CCM)$/,
    ['wrap', 'unwrap'],
    'These mechanisms do not serve for wrapping: keys are wrapped only with mechanisms that detect changes, and a key that encrypts with the same stream or blocks could unwrap what it wrapped.',
  ],
  [
    /^AES_KEY_WRAP/,
    ['encrypt', 'decrypt'],
    'A key that wraps cannot also decrypt data, because both together reveal sensitive keys.',
  ],
  [/^AES_CCM$/, messages, 'The message functions support only AES-GCM.'],
  [/^AES_(CTS|OFB|CFB)/, useNames, 'No known database or tool uses it.'],
  [/^SP800_108_DOUBLE_PIPELINE/, useNames, 'No known database or tool uses it.'],
  [/^AES_MAC/, useNames, 'CBC-MAC can be forged for messages of different lengths. Use `CKM_AES_CMAC`.'],
  [/^MD5$/, useNames, 'Broken.'],
  [/^DES3_/, useNames, 'Withdrawn (SP 800-131A): 64-bit blocks repeat too soon.'],
  [
    /^CONCATENATE_|^XOR_BASE_|^EXTRACT_KEY_/,
    ['derive'],
    'The derived keys are related to their base key: parts of it, or combinations with known bytes. An attacker can find a sensitive key part by part. Use `CKM_HKDF_DERIVE`.',
  ],
  [/^DH_/, useNames, 'Keys of this type are not supported. Use `CKM_ECDH1_DERIVE`.'],
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

/** Whether data can be passed in one piece only. */
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
  return ['| not supported | why |', '|---|---|', ...lines].join('\n');
};

/** Where a mechanism that is carried does not do all that the standard has. */
const limits: readonly (readonly [string, string, string])[] = [
  [
    '`CKM_EDDSA`',
    '`CK_EDDSA_PARAMS` fail with `CKR_MECHANISM_PARAM_INVALID`, except for Ed448 without prehash and context',
    'They select Ed25519ctx, Ed25519ph, Ed448ph (3.1, section 6.3.15) or Ed448 with a context, which the core does not offer. Without parameters the signature is Ed25519 or Ed448.',
  ],
  [
    '`CKM_EDDSA`',
    'parts of more than 1 MB in total are refused',
    'EdDSA reads the message twice, so the agent collects its parts.',
  ],
  [
    '`CKM_SP800_108_…_KDF`',
    'additional derived keys, and more than 4096 bytes of data or IV, are refused',
    'One call derives one key.',
  ],
  [
    '`CKM_AES_GCM`',
    'tags below 96 bits are refused',
    'Short tags can be forged too easily (SP 800-38D, section 5.2.1.2).',
  ],
  ['`CKM_AES_GCM`', 'IVs above 128 bytes are refused', 'OpenSSL does not support them.'],
  [
    '`CKM_AES_KEY_WRAP`',
    'a key below 16 bytes is padded with zeros to 16, not to 8',
    'RFC 3394 wraps at least 16 bytes.',
  ],
  [
    '`…_GENERAL` (Verify)',
    'MACs below 4 bytes are refused',
    'Shorter MACs can be found by trying (SP 800-107, section 5.3.3).',
  ],
];

const limitTable = (): string =>
  ['| mechanism | difference | why |', '|---|---|---|', ...limits.map((each) => `| ${each.join(' | ')} |`)].join('\n');

/** What a function does that the words carried and refused do not say. */
const remarks: Partial<Record<keyof typeof calls | keyof typeof stubs, string>> = {
  C_InitToken: 'the service creates the token',
  C_InitPIN: 'no PIN is stored',
  C_SetPIN: 'no PIN is stored',
  C_GetOperationState: 'the state of an operation does not leave the agent or the service',
  C_SetOperationState: 'the state of an operation does not leave the agent or the service',
  C_Login: 'CKU_USER with any PIN',
  C_LoginUser: 'CKU_USER with any PIN and any name',
  C_DigestKey: 'always `CKR_KEY_INDIGESTIBLE`: a digest of a key allows tests of guesses',
  C_WaitForSlotEvent: '`CKR_NO_EVENT`; without CKF_DONT_BLOCK `CKR_FUNCTION_NOT_SUPPORTED`',
  C_GetFunctionStatus: 'always `CKR_FUNCTION_NOT_PARALLEL`',
  C_CancelFunction: 'always `CKR_FUNCTION_NOT_PARALLEL`',
  C_SeedRandom: 'accepted without effect: the system seeds the generator',
  C_MessageSignInit: 'no mechanism signs message by message',
  C_MessageVerifyInit: 'no mechanism verifies message by message',
  C_EncapsulateKey: 'no mechanism encapsulates',
  C_DecapsulateKey: 'no mechanism encapsulates',
  C_VerifySignatureInit: 'no mechanism needs the signature before the data',
  C_GetSessionValidationFlags: 'the token is not validated',
  C_AsyncComplete: 'no call continues in the background',
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
  agent: 'supported',
  library: 'supported, by the library itself',
  refused: '`CKR_FUNCTION_NOT_SUPPORTED`',
} as const;

const functionTable = (since: '2.40' | '3.0' | '3.2'): string => {
  const lines = functions
    .filter(([, of]) => of === since)
    .map(([name]) => `| \`${name}\` | ${statuses[statusOf(name)]} | ${remarks[name] ?? ''} |`);
  return ['| function | status | |', '|---|---|---|', ...lines].join('\n');
};

/** What pkcs11js calls in the tests, and why graphene-pk11 does not. */
const driverTable = (): string => {
  const byReason = new Map<string, string[]>();
  for (const [name, why] of Object.entries(pkcs11jsOnly))
    byReason.set(why, [...(byReason.get(why) ?? []), `\`${name}\``]);
  const lines = [...byReason].map(([why, of]) => `| ${of.join(', ')} | ${why} |`);
  return [
    '| called by pkcs11js | why |',
    '|---|---|',
    ...lines,
    ...Object.values(grapheneReasons).map(({ calls, why }) => `| ${calls} | ${why} |`),
  ].join('\n');
};

const count = (which: (status: string) => boolean): number =>
  functions.filter(([name]) => which(statusOf(name))).length;

export const conformancePage = (): string => `# Conformance

This page is for developers. It lists every function of PKCS#11 2.40, 3.0 and 3.2, and every
mechanism that \`libdke_pkcs11.so\` knows, and shows which are supported.
[The PKCS#11 library](pkcs11.md) describes how they behave. [Differences](differences.md) lists the
rules of the standard that the library does not follow.

The page is generated from the tables of the code (\`node test/support/conformance-page.ts\`). The
tests start every use of every mechanism, with session keys and token keys, and compare the result
with this page.

## Functions

${count((status) => status !== 'refused')} of ${functions.length} functions are supported. The function lists contain all of them, as the
standard requires.

### PKCS#11 2.40

${functionTable('2.40')}

### PKCS#11 3.0

${functionTable('3.0')}

### PKCS#11 3.2

${functionTable('3.2')}

## Functions and mechanisms

| sign | meaning |
|---|---|
| ● | supported, with data in one piece and in parts, with session keys and token keys |
| 1 | the same, with data in one piece, as in the standard |
| ○ | only for applications with a [compatibility switch](compatibility.md); \`CKR_MECHANISM_INVALID\` otherwise |
| – | in the standard, but not supported: \`CKR_MECHANISM_INVALID\`; the reasons are below |
| empty | not in the standard |

${mechanismMatrix()}

${refusals()}

### Parameters and data

These supported mechanisms do not support everything in the standard:

${limitTable()}

## Who calls in the tests

The cases of \`test/conformance\` are written once. graphene-pk11 makes their calls on the built
library wherever it can express them: sessions, objects, templates, every mechanism, key wrapping
and searches. The same cases run on SoftHSM2, and over p11-kit with pkcs11js alone.

graphene-pk11 calls ${grapheneFunctions.map((name) => `\`${name}\``).join(', ')}, and searches.

pkcs11js calls the rest, and C programs (\`c-programs.test.ts\`, \`test/native\`) what no binding has:
NULL pointers, interfaces, and the functions since 3.0.

${driverTable()}
`;

if (process.argv[1] === import.meta.filename) {
  writeFileSync(join(import.meta.dirname, '../../docs/conformance.md'), conformancePage());
}
