// The reference's rules through Debian's p11-kit, which stands between a program and a token: what
// its own version 0.24 changes. Newer ones carry more, so that a rule which holds is never an
// error.
import { isDeepStrictEqual } from 'node:util';
import type { Token } from '../../support/token.ts';
import type { Rule, Seen } from './bench.ts';
import { expectedOn } from './differences.ts';

export interface Wire {
  /** Whose token is behind it. */
  readonly token: Token['name'];
  /**
   * Rules about mechanisms that it does not forward, because it does not know the form of their
   * parameters.
   */
  readonly notCarried: RegExp;
  /** What it answers itself, or passes on in another way, and why. */
  readonly own: Readonly<Record<string, { readonly seen: Seen; readonly why: string }>>;
}

export const wires = {
  'p11-kit-client.so on our agent': {
    token: 'DKE',
    notCarried:
      /SHA224|_PSS\b|EDDSA|EDWARDS|AES_(?:CBC|CTR|GCM|CMAC|KEY_WRAP)|ECDH|WrapKey|UnwrapKey|DeriveKey|wrapped under|ALLOWED_MECHANISMS|C_EncryptUpdate and|dual functions|padded text|C_(?:Sign|Verify)Init /,
    own: {
      'C_Initialize a second time': {
        seen: 'CKR_CANT_LOCK',
        why: 'p11-kit checks the arguments first, and requires the locks of the system.',
      },
      'C_CreateObject: a boolean of two bytes': {
        seen: 'CKR_HOST_MEMORY',
        why: 'p11-kit cannot write it into its message.',
      },
      'CKM_RSA_PKCS_OAEP without its parameter': {
        seen: 'CKR_HOST_MEMORY',
        why: 'p11-kit cannot write it into its message.',
      },
    },
  },
  'our library on p11-kit server over SoftHSM2': {
    token: 'SoftHSM2',
    notCarried: /AES_(?:CTR|GCM)|ECDH|DeriveKey|_RSA_PKCS_PSS\b/,
    own: {
      'C_CloseAllSessions of no slot': {
        seen: 'CKR_OK',
        why: 'p11-kit closes the sessions that it knows on this slot: none.',
      },
      'C_Decrypt of CKM_AES_CBC_PAD with nothing': {
        seen: 'CKR_GENERAL_ERROR',
        why: 'p11-kit passes the empty text with an address, so SoftHSM2 processes it.',
      },
    },
  },
} as const satisfies Readonly<Record<string, Wire>>;

/** Null if the result of a rule over a wire is permitted, else the expected result. */
export const wronglySeen = (wire: Wire, rule: Rule, seen: Seen): Seen | undefined => {
  const expected = expectedOn(wire.token, rule);
  const allowed = [expected, rule.expected, ...(rule.name in wire.own ? [wire.own[rule.name]?.seen] : [])];
  if (allowed.some((each) => isDeepStrictEqual(seen, each))) return undefined;
  if (wire.notCarried.test(rule.name) && JSON.stringify(seen).includes('CKR_MECHANISM_INVALID')) return undefined;
  return expected;
};

/** What p11-kit answers itself, as the page has it. */
export const wireTable = (): string => {
  const lines = Object.entries(wires).flatMap(([name, { own }]) =>
    Object.entries(own).map(([rule, { seen, why }]) => `| ${name} | ${rule} | \`${seen}\` | ${why} |`),
  );
  return ['| connection | rule | answer | why |', '|---|---|---|---|', ...lines].join('\n');
};
