// Where a token does something else than the standard, and why: one table, which the rules are held
// against and docs/differences.md is written from. A rule that is not named here holds on both
// tokens. What is here and no longer so is an error too.
import { isDeepStrictEqual } from 'node:util';
import type { Token } from '../../support/token.ts';
import type { Rule, Seen } from './bench.ts';
import { rules } from './rules.ts';

type TokenName = Token['name'];

export interface Difference {
  readonly reason: string;
  /**
   * The token's answers by the name of the rule; of an answer with named members, only those that
   * differ from the standard.
   */
  readonly rules: Readonly<Record<string, Seen>>;
}

export const differences: Readonly<Record<TokenName, readonly Difference[]>> = {
  DKE: [
    {
      reason:
        'A token that reports whether PKCS #1 v1.5 padding is valid can be misused to decrypt messages. Use OAEP, or a compatibility switch.',
      rules: {
        'CKM_RSA_PKCS does what the standard lets it do': ['sign', 'sign recover', 'verify', 'verify recover'],
        'CKM_RSA_PKCS decrypts': 'CKR_MECHANISM_INVALID',
      },
    },
    {
      reason: 'SHA-1 is broken for signatures. DKE verifies them, but creates them only with a compatibility switch.',
      rules: {
        'CKM_SHA1_RSA_PKCS does what the standard lets it do': ['verify'],
        'CKM_SHA1_RSA_PKCS_PSS does what the standard lets it do': ['verify'],
        'new signatures over SHA-1': 'CKR_MECHANISM_INVALID',
      },
    },
    {
      reason:
        'Keys are wrapped only with mechanisms that detect changes. A key that wraps cannot also decrypt data, because both together reveal sensitive keys.',
      rules: {
        'CKM_AES_ECB does what the standard lets it do': ['encrypt', 'decrypt'],
        'CKM_AES_CTR does what the standard lets it do': ['encrypt', 'decrypt'],
        'CKM_AES_GCM does what the standard lets it do': ['encrypt', 'decrypt'],
        'CKM_AES_KEY_WRAP does what the standard lets it do': ['wrap', 'unwrap'],
        'CKM_AES_KEY_WRAP_PAD does what the standard lets it do': ['wrap', 'unwrap'],
        'C_WrapKey of a sensitive key under a key that may decrypt': 'CKR_KEY_NOT_WRAPPABLE',
      },
    },
    {
      reason:
        'The service manages the token and its users: no PIN is stored or checked, and there is no security officer.',
      rules: {
        'C_InitToken while a session is open': 'CKR_FUNCTION_NOT_SUPPORTED',
        'C_InitPIN by the user': 'CKR_FUNCTION_NOT_SUPPORTED',
        'C_SetPIN with a wrong PIN': 'CKR_FUNCTION_NOT_SUPPORTED',
        'C_Login with a wrong PIN': 'CKR_OK',
        'C_Login of the security officer while the user is logged in': 'CKR_USER_TYPE_INVALID',
        'C_Login of the security officer while a read-only session is open': 'CKR_USER_TYPE_INVALID',
      },
    },
    {
      reason:
        'Under GCM a repeated IV reveals the difference of two messages and allows forgeries (SP 800-38D, section 8).',
      rules: { 'CKM_AES_GCM twice under one key and one IV': ['CKR_OK', 'CKR_MECHANISM_PARAM_INVALID'] },
    },
    {
      reason: 'The service assigns the handles of token objects, so they stay valid as long as the object exists.',
      rules: { 'the handle of a private object of the token after C_Logout and C_Login': 'CKR_OK' },
    },
    {
      reason: 'Databases select their master key only by its label. With two such keys, they could use the wrong one.',
      rules: {
        'two secret keys of the token that are not modifiable with one label': ['CKR_OK', 'CKR_TEMPLATE_INCONSISTENT'],
      },
    },
    {
      reason:
        'A database encrypts for months before it needs its master key again. The key must last longer than its session.',
      rules: {
        'the master key of a database that names no CKA_TOKEN is on the token': true,
        'the master key of a database with CKA_TOKEN false': 'CKR_TEMPLATE_INCONSISTENT',
      },
    },
    {
      reason: 'A digest of a key allows tests of guesses.',
      rules: { 'C_DigestKey of a key that may be read': 'CKR_KEY_INDIGESTIBLE' },
    },
    {
      reason:
        'In the service a key is one object, so disabling or destroying it ends every use. A key that may be read can be copied.',
      rules: { 'a sensitive key of the token is copied': 'CKR_ACTION_PROHIBITED' },
    },
    {
      reason:
        'For a token key, the service sets CKA_ALWAYS_SENSITIVE and CKA_NEVER_EXTRACTABLE. It does not know the earlier history of a session key.',
      rules: {
        'a copy on the token of a key of the session says what its source always and never was': {
          always: false,
          never: false,
        },
      },
    },
    {
      reason: 'An RSA key below 2048 bits is too weak.',
      rules: { 'C_GenerateKeyPair of RSA with 1024 bits': 'CKR_ATTRIBUTE_VALUE_INVALID' },
    },
  ],
  SoftHSM2: [
    {
      reason: 'SoftHSM2 has one default for all keys, including unwrapped ones.',
      rules: { 'C_UnwrapKey: what the key says when its template does not': { EXTRACTABLE: false } },
    },
    {
      reason: 'SoftHSM2 also shows an empty slot, for the next token.',
      rules: { 'slots with a token: one': 2 },
    },
    {
      reason: 'SoftHSM2 does not support these uses.',
      rules: {
        'CKM_RSA_PKCS does what the standard lets it do': ['encrypt', 'decrypt', 'sign', 'verify', 'wrap', 'unwrap'],
        'CKM_AES_ECB does what the standard lets it do': ['encrypt', 'decrypt'],
        'CKM_AES_CBC does what the standard lets it do': ['encrypt', 'decrypt', 'wrap'],
        'CKM_AES_CBC_PAD does what the standard lets it do': ['encrypt', 'decrypt'],
        'CKM_AES_CTR does what the standard lets it do': ['encrypt', 'decrypt'],
        'CKM_AES_GCM does what the standard lets it do': ['encrypt', 'decrypt'],
        'CKM_AES_KEY_WRAP does what the standard lets it do': ['wrap', 'unwrap'],
        'CKM_AES_KEY_WRAP_PAD does what the standard lets it do': ['wrap', 'unwrap'],
        'CKM_RSA_PKCS_OAEP with sha256: what the token encrypts others decrypt': 'CKR_ARGUMENTS_BAD',
        'CKM_RSA_PKCS_OAEP with sha256: what others encrypt the token decrypts': 'CKR_ARGUMENTS_BAD',
      },
    },
    {
      reason:
        'The standard leaves the default to the token. By default, values can be read in SoftHSM2, but not in DKE.',
      rules: {
        'an RSA private key: CKA_SENSITIVE': false,
        'an EC private key: CKA_SENSITIVE': false,
        'an AES key: CKA_SENSITIVE': false,
        'a generic secret: CKA_SENSITIVE': false,
      },
    },
    {
      reason: 'SoftHSM2 checks this later, or not at all.',
      rules: {
        'C_CreateObject: an AES key of 15 bytes': 'CKR_OK',
        'C_CreateObject: a class of one byte': 'CKR_TEMPLATE_INCOMPLETE',
        'C_DigestKey of a sensitive key': 'CKR_OK',
        'C_Encrypt after C_EncryptUpdate': 'CKR_OK',
        'C_Logout twice': ['CKR_OK', 'CKR_OK'],
      },
    },
    {
      reason:
        'Section 4.1.1 distinguishes an attribute that Cryptoki does not know from a known attribute of another kind of object. SoftHSM2 has one code for both.',
      rules: {
        'C_CreateObject: an attribute that is no such object’s': 'CKR_ATTRIBUTE_TYPE_INVALID',
        'C_SetAttributeValue: an attribute that is not a key’s': 'CKR_ATTRIBUTE_TYPE_INVALID',
        'C_CopyObject: an attribute that is not a key’s': 'CKR_ATTRIBUTE_TYPE_INVALID',
        'C_GenerateKey with a value': 'CKR_ATTRIBUTE_READ_ONLY',
        'C_GenerateKey of another class': 'CKR_ATTRIBUTE_VALUE_INVALID',
      },
    },
    {
      reason: 'SoftHSM2 cannot change the value of a data object.',
      rules: { 'the value of a data object that is modifiable is changed': 'CKR_ATTRIBUTE_READ_ONLY' },
    },
    {
      reason: 'SoftHSM2 applies CKA_MODIFIABLE to copies too.',
      rules: { 'C_CopyObject: the label of what is not modifiable': 'CKR_ATTRIBUTE_READ_ONLY' },
    },
    {
      reason: 'SoftHSM2 has another code for a parameter that is missing or has the wrong length.',
      rules: {
        'C_EncryptInit of CKM_AES_CBC without its IV': 'CKR_ARGUMENTS_BAD',
        'C_EncryptInit of CKM_AES_CBC with an IV of 15 bytes': 'CKR_MECHANISM_INVALID',
        'CKM_RSA_PKCS_OAEP without its parameter': 'CKR_ARGUMENTS_BAD',
        'CKM_RSA_PKCS_PSS without its parameter': 'CKR_ARGUMENTS_BAD',
      },
    },
    {
      reason: 'SoftHSM2 does not distinguish keys from other objects if a handle is invalid.',
      rules: {
        'C_EncryptInit with no key': 'CKR_OBJECT_HANDLE_INVALID',
        'C_DecryptInit with no key': 'CKR_OBJECT_HANDLE_INVALID',
        'C_SignInit with no key': 'CKR_OBJECT_HANDLE_INVALID',
        'C_VerifyInit with no key': 'CKR_OBJECT_HANDLE_INVALID',
        'C_DeriveKey with no key': 'CKR_OBJECT_HANDLE_INVALID',
      },
    },
    {
      reason: 'SoftHSM2 reports that its cryptographic library refused, but not why.',
      rules: {
        'C_Decrypt of CKM_AES_CBC_PAD with a padding that is none': 'CKR_GENERAL_ERROR',
        'C_Decrypt of CKM_AES_GCM with a bit changed': 'CKR_GENERAL_ERROR',
        'C_Decrypt of CKM_AES_GCM with other additional data': 'CKR_GENERAL_ERROR',
        'CKM_RSA_PKCS with a key of the session, over a DigestInfo': { tooLong: 'CKR_GENERAL_ERROR' },
        'CKM_RSA_PKCS with a key of the token, over a DigestInfo': { tooLong: 'CKR_GENERAL_ERROR' },
        'CKM_RSA_PKCS_PSS with a key of the session, over a digest': { wrongLength: 'CKR_GENERAL_ERROR' },
        'CKM_RSA_PKCS_PSS with a key of the token, over a digest': { wrongLength: 'CKR_GENERAL_ERROR' },
        'C_GenerateKeyPair on an unknown curve': 'CKR_GENERAL_ERROR',
        'C_UnwrapKey of what was changed': 'CKR_GENERAL_ERROR',
        'CKM_ECDH1_DERIVE with a point that is not on the curve': 'CKR_GENERAL_ERROR',
      },
    },
    {
      reason: 'The test passes an empty text as a null pointer. SoftHSM2 does not accept null with a length of zero.',
      rules: {
        'C_Decrypt of CKM_AES_CBC_PAD with nothing': 'CKR_ARGUMENTS_BAD',
        'CKM_SHA_1 of no bytes, whole and in parts': 'CKR_ARGUMENTS_BAD',
        'CKM_SHA224 of no bytes, whole and in parts': 'CKR_ARGUMENTS_BAD',
        'CKM_SHA256 of no bytes, whole and in parts': 'CKR_ARGUMENTS_BAD',
        'CKM_SHA384 of no bytes, whole and in parts': 'CKR_ARGUMENTS_BAD',
        'CKM_SHA512 of no bytes, whole and in parts': 'CKR_ARGUMENTS_BAD',
      },
    },
    {
      reason: 'SoftHSM2 requires room for the padding too, although it does not write it.',
      rules: { 'a padded text is decrypted into room for the text alone': 'CKR_BUFFER_TOO_SMALL' },
    },
    {
      reason: 'A session of SoftHSM2 has one operation at a time, and so no dual functions.',
      rules: {
        'one session encrypts and digests at once': [
          'CKR_OK',
          'CKR_OPERATION_ACTIVE',
          'CKR_OK',
          'CKR_OPERATION_NOT_INITIALIZED',
        ],
        'the dual functions with a key of the session': 'CKR_OPERATION_ACTIVE',
        'the dual functions with a key of the token': 'CKR_OPERATION_ACTIVE',
      },
    },
    {
      reason: 'SoftHSM2 requires an HMAC key to be as long as the hash.',
      rules: { 'an HMAC key shorter than its hash': 'CKR_KEY_SIZE_RANGE' },
    },
    {
      reason:
        'SoftHSM2 pads to whole blocks before it wraps, so the wrapped key does not contain the length of the key.',
      rules: Object.fromEntries(
        ['session', 'token'].map((place) => [
          `CKM_AES_KEY_WRAP_PAD under a key of the ${place}: the published result, and back`,
          {
            wrapped: 'cf1e485360e1a8126f524d01771677f9400edb4d074f14116988d71e1588e367',
            back: 'c37b7e6492584340bed12207808941155068f73800000000',
          },
        ]),
      ),
    },
  ],
};

const isMembers = (seen: Seen): seen is { readonly [name: string]: Seen } =>
  typeof seen === 'object' && seen !== null && !Array.isArray(seen);

/** The expected result of a rule on a token: the standard's, or the difference. */
export const expectedOn = (token: TokenName, { name, expected }: Rule): Seen => {
  const seen = differences[token].flatMap((difference) => (name in difference.rules ? [difference.rules[name]] : []));
  const [only = expected] = seen;
  if (seen.length > 1) throw new Error(`two differences of ${token} have one rule: ${name}`);
  return isMembers(expected) && isMembers(only) ? { ...expected, ...only } : only;
};

/** Useless rows: for an unknown rule, or equal to the standard. */
export const idleDifferences = (): string[] => {
  const byName = new Map(rules.map((rule) => [rule.name, rule]));
  return (Object.keys(differences) as TokenName[]).flatMap((token) =>
    differences[token].flatMap((difference) =>
      Object.keys(difference.rules).filter((name) => {
        const rule = byName.get(name);
        return rule === undefined || isDeepStrictEqual(expectedOn(token, rule), rule.expected);
      }),
    ),
  );
};

const cell = (seen: Seen): string => {
  if (Array.isArray(seen)) return seen.length === 0 ? 'nothing' : seen.map(cell).join(', ');
  if (isMembers(seen)) {
    return Object.entries(seen)
      .map(([name, value]) => `${name}: ${cell(value)}`)
      .join(', ');
  }
  const text = String(seen);
  return `\`${text.length > 40 ? `${text.slice(0, 16)}…` : text}\``;
};

/**
 * The standard's answer to a rule; of an answer with named members, only those that the row has.
 */
const standardOf = ({ expected }: Rule, seen: Seen): Seen =>
  isMembers(expected) && isMembers(seen)
    ? Object.fromEntries(Object.keys(seen).map((name) => [name, expected[name] ?? null]))
    : expected;

/** The table of one token, as the page has it. */
export const differenceTable = (token: TokenName): string => {
  const byName = new Map(rules.map((rule) => [rule.name, rule]));
  const lines = differences[token].flatMap(({ reason, rules: named }) =>
    Object.entries(named).map(([name, seen]) => {
      const rule = byName.get(name);
      if (rule === undefined) throw new Error(`no rule is called ${name}`);
      return `| ${name} | ${rule.section} | ${cell(standardOf(rule, seen))} | ${cell(seen)} | ${reason} |`;
    }),
  );
  return [`| rule | section | the standard | ${token} | why |`, '|---|---|---|---|---|', ...lines].join('\n');
};
