// Where a token does something else than the standard, and why: one table, which the rules are held against and docs/differences.md
// is written from. A rule that is not named here holds on both tokens. What is here and no longer so is an error too.
import { isDeepStrictEqual } from 'node:util';
import type { Token } from '../../support/token.ts';
import type { Rule, Seen } from './bench.ts';
import { rules } from './rules.ts';

type TokenName = Token['name'];

export interface Difference {
  readonly reason: string;
  /** By the rule's name. Of several answers under names, those alone that differ. */
  readonly rules: Readonly<Record<string, Seen>>;
}

export const differences: Readonly<Record<TokenName, readonly Difference[]>> = {
  DKE: [
    {
      reason:
        'A token that reports whether PKCS #1 v1.5 padding is valid decrypts for anyone who asks often enough. Use OAEP, or a compatibility switch.',
      rules: {
        'CKM_RSA_PKCS does what the standard lets it do': ['sign', 'sign recover', 'verify', 'verify recover'],
        'CKM_RSA_PKCS decrypts': 'CKR_MECHANISM_INVALID',
      },
    },
    {
      reason: 'SHA-1 is broken for signatures: they are verified, but not made without a compatibility switch.',
      rules: {
        'CKM_SHA1_RSA_PKCS does what the standard lets it do': ['verify'],
        'CKM_SHA1_RSA_PKCS_PSS does what the standard lets it do': ['verify'],
        'new signatures over SHA-1': 'CKR_MECHANISM_INVALID',
      },
    },
    {
      reason:
        'Keys are wrapped by what notices changes, and what wraps keys does not encrypt data: the two together take sensitive keys out.',
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
        'Under GCM a repeated IV tells the difference of two messages and lets others forge a third (SP 800-38D, section 8).',
      rules: { 'CKM_AES_GCM twice under one key and one IV': ['CKR_OK', 'CKR_MECHANISM_PARAM_INVALID'] },
    },
    {
      reason:
        'The service gives out the handles of objects of the token, so that they mean the same for as long as the object is there.',
      rules: { 'the handle of a private object of the token after C_Logout and C_Login': 'CKR_OK' },
    },
    {
      reason: 'Databases select their master key by its label and nothing else: of two, they would take either.',
      rules: {
        'two secret keys of the token that are not modifiable with one label': ['CKR_OK', 'CKR_TEMPLATE_INCONSISTENT'],
      },
    },
    {
      reason: 'A digest of a key is a way to test guesses at it.',
      rules: { 'C_DigestKey of a key that may be read': 'CKR_KEY_INDIGESTIBLE' },
    },
    {
      reason:
        'A key in the service’s custody is one object there: disabling or destroying it ends every use of it. A key that may be read is copied.',
      rules: { 'a sensitive key of the token is copied': 'CKR_ACTION_PROHIBITED' },
    },
    {
      reason:
        'CKA_ALWAYS_SENSITIVE and CKA_NEVER_EXTRACTABLE of a key of the token are the word of the service, which did not see what happened to the key before.',
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
      reason: 'SoftHSM2 has one default for all keys, also for those that are unwrapped.',
      rules: { 'C_UnwrapKey: what the key says when its template does not': { EXTRACTABLE: false } },
    },
    {
      reason: 'SoftHSM2 shows an empty slot beside each token, for the next one.',
      rules: { 'slots with a token: one': 2 },
    },
    {
      reason: 'SoftHSM2 does not carry these uses.',
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
        'The standard leaves the default to the token. SoftHSM2 lets values be read unless told otherwise; ours does not.',
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
        'Section 4.1.1 calls an attribute invalid that Cryptoki does not know, and a template inconsistent that gives one to the wrong object. SoftHSM2 has one code for both.',
      rules: {
        'C_CreateObject: an attribute that is no such object’s': 'CKR_ATTRIBUTE_TYPE_INVALID',
        'C_SetAttributeValue: an attribute that is no key’s': 'CKR_ATTRIBUTE_TYPE_INVALID',
        'C_CopyObject: an attribute that is no key’s': 'CKR_ATTRIBUTE_TYPE_INVALID',
        'C_GenerateKey with a value': 'CKR_ATTRIBUTE_READ_ONLY',
        'C_GenerateKey of another class': 'CKR_ATTRIBUTE_VALUE_INVALID',
      },
    },
    {
      reason: 'SoftHSM2 does not change the value of data.',
      rules: { 'the value of a data object that is modifiable is changed': 'CKR_ATTRIBUTE_READ_ONLY' },
    },
    {
      reason: 'SoftHSM2 applies CKA_MODIFIABLE to copies too.',
      rules: { 'C_CopyObject: the label of what is not modifiable': 'CKR_ATTRIBUTE_READ_ONLY' },
    },
    {
      reason: 'SoftHSM2 has another code for a parameter that is missing or of the wrong length.',
      rules: {
        'C_EncryptInit of CKM_AES_CBC without its IV': 'CKR_ARGUMENTS_BAD',
        'C_EncryptInit of CKM_AES_CBC with an IV of 15 bytes': 'CKR_MECHANISM_INVALID',
        'CKM_RSA_PKCS_OAEP without its parameter': 'CKR_ARGUMENTS_BAD',
        'CKM_RSA_PKCS_PSS without its parameter': 'CKR_ARGUMENTS_BAD',
      },
    },
    {
      reason: 'SoftHSM2 does not tell keys from other objects when a handle leads nowhere.',
      rules: {
        'C_EncryptInit with no key': 'CKR_OBJECT_HANDLE_INVALID',
        'C_DecryptInit with no key': 'CKR_OBJECT_HANDLE_INVALID',
        'C_SignInit with no key': 'CKR_OBJECT_HANDLE_INVALID',
        'C_VerifyInit with no key': 'CKR_OBJECT_HANDLE_INVALID',
        'C_DeriveKey with no key': 'CKR_OBJECT_HANDLE_INVALID',
      },
    },
    {
      reason: 'SoftHSM2 passes on that its cryptographic library refused, not why.',
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
      reason: 'An empty text has no address when it comes from here, and SoftHSM2 takes no null with a length of zero.',
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
      reason: 'SoftHSM2 asks for room for the padding as well, although it writes none of it.',
      rules: { 'a padded text is decrypted into room for the text alone': 'CKR_BUFFER_TOO_SMALL' },
    },
    {
      reason: 'A session of SoftHSM2 has one operation at a time, so it has no dual functions either.',
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
      reason: 'SoftHSM2 wants an HMAC key to be as long as the hash.',
      rules: { 'an HMAC key shorter than its hash': 'CKR_KEY_SIZE_RANGE' },
    },
    {
      reason:
        'SoftHSM2 fills up to whole blocks before it wraps, so that the length of the key is not in what is wrapped.',
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

/** What a rule has to see on a token: what the standard says, but for a difference. */
export const expectedOn = (token: TokenName, { name, expected }: Rule): Seen => {
  const seen = differences[token].flatMap((difference) => (name in difference.rules ? [difference.rules[name]] : []));
  const [only = expected] = seen;
  if (seen.length > 1) throw new Error(`two differences of ${token} have one rule: ${name}`);
  return isMembers(expected) && isMembers(only) ? { ...expected, ...only } : only;
};

/** Rows that say nothing: of a rule that there is not, or of what the standard says too. */
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

/** Of several answers under names, those alone that the row has. */
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
