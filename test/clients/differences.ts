// Differences of a program between both tokens, with the reasons. The tests of this folder use this
// list, and the programs' part of docs/differences.md is written from here.
import type { Token } from '../support/token.ts';

type TokenName = Token['name'];

interface ProgramDifference {
  readonly program: string;
  readonly what: string;
  /** The token with which it does not work. */
  readonly lacking: TokenName;
  readonly why: string;
}

export const programDifferences = {
  'pkcs11-tool: own test': {
    program: 'pkcs11-tool',
    what: '`--test` with an RSA pair on the token',
    lacking: 'SoftHSM2',
    why: 'It supports OAEP only with SHA-1; the tool uses SHA-256.',
  },
  'pkcs11-tool: ECDSA over the message': {
    program: 'pkcs11-tool',
    what: '`--sign --mechanism ECDSA-SHA256`',
    lacking: 'SoftHSM2',
    why: 'It supports ECDSA only over a digest.',
  },
  'pkcs11-tool: raw RSA': {
    program: 'pkcs11-tool',
    what: 'raw RSA, decryption with PKCS#1 v1.5 padding, MD5, DES, new signatures over SHA-1',
    lacking: 'DKE',
    why: 'A check of their padding reveals information, or they are broken.',
  },
  'interface 3.0': {
    program: 'pkcs11-tool, NSS',
    what: 'the interface of PKCS#11 3.0',
    lacking: 'SoftHSM2',
    why: 'It has version 2.40.',
  },
  'Java: HmacSHA384': {
    program: 'Java',
    what: '`HmacSHA384` with a key of 32 bytes',
    lacking: 'SoftHSM2',
    why: 'It requires a key as long as the hash.',
  },
  'Java: HmacSHA512': {
    program: 'Java',
    what: '`HmacSHA512` with a key of 32 bytes',
    lacking: 'SoftHSM2',
    why: 'It requires a key as long as the hash.',
  },
  'Java: ECDH': {
    program: 'Java',
    what: '`KeyAgreement` with a pair of `KeyPairGenerator`',
    lacking: 'SoftHSM2',
    why: 'Private keys can derive only if their template allows it. Java’s template does not name this use.',
  },
  'a GCM text that was changed': {
    program: 'graphene-pk11',
    what: 'distinguishing a changed ciphertext from a fault of the token',
    lacking: 'SoftHSM2',
    why: 'It returns `CKR_GENERAL_ERROR` for both.',
  },
} as const satisfies Readonly<Record<string, ProgramDifference>>;

/** Whether a program cannot do this with a token. */
export const lacks = (token: TokenName, what: string): boolean =>
  Object.entries(programDifferences).some(([name, { lacking }]) => name === what && lacking === token);

export const programTable = (): string => {
  const lines = Object.values(programDifferences).map(
    ({ program, what, lacking, why }) => `| ${program} | ${what} | ${lacking} | ${why} |`,
  );
  return ['| program | what | does not work with | why |', '|---|---|---|---|', ...lines].join('\n');
};
