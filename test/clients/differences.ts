// Where a program cannot do with one token what it does with the other, and why. The tests of this folder ask here, and the programs' part of
// docs/differences.md is written from here.
import type { Token } from '../support/token.ts';

type TokenName = Token['name'];

interface ProgramDifference {
  readonly program: string;
  readonly what: string;
  /** The token with which it does not go. */
  readonly lacking: TokenName;
  readonly why: string;
}

export const programDifferences = {
  'pkcs11-tool: own test': {
    program: 'pkcs11-tool',
    what: '`--test` with an RSA pair on the token',
    lacking: 'SoftHSM2',
    why: 'It has OAEP with SHA-1 alone; the tool takes SHA-256.',
  },
  'pkcs11-tool: ECDSA over the message': {
    program: 'pkcs11-tool',
    what: '`--sign --mechanism ECDSA-SHA256`',
    lacking: 'SoftHSM2',
    why: 'It has ECDSA over a digest alone.',
  },
  'pkcs11-tool: raw RSA': {
    program: 'pkcs11-tool',
    what: 'raw RSA, decryption with PKCS#1 v1.5 padding, MD5, DES, new signatures over SHA-1',
    lacking: 'DKE',
    why: 'Their padding cannot be checked without telling, or they are broken.',
  },
  'interface 3.0': {
    program: 'pkcs11-tool, NSS',
    what: 'the interface of PKCS#11 3.0',
    lacking: 'SoftHSM2',
    why: 'It is of version 2.40.',
  },
  'Java: HmacSHA384': {
    program: 'Java',
    what: '`HmacSHA384` with a key of 32 bytes',
    lacking: 'SoftHSM2',
    why: 'It wants a key as long as the hash.',
  },
  'Java: HmacSHA512': {
    program: 'Java',
    what: '`HmacSHA512` with a key of 32 bytes',
    lacking: 'SoftHSM2',
    why: 'It wants a key as long as the hash.',
  },
  'Java: ECDH': {
    program: 'Java',
    what: '`KeyAgreement` with a pair of `KeyPairGenerator`',
    lacking: 'SoftHSM2',
    why: 'Private keys derive there only when their template says so; Java’s says nothing.',
  },
  'a GCM text that was changed': {
    program: 'graphene-pk11',
    what: 'telling a text that does not authenticate from a fault of the token',
    lacking: 'SoftHSM2',
    why: 'It says `CKR_GENERAL_ERROR` to both.',
  },
} as const satisfies Readonly<Record<string, ProgramDifference>>;

/** Whether a program cannot do this with a token. */
export const lacks = (token: TokenName, what: string): boolean =>
  Object.entries(programDifferences).some(([name, { lacking }]) => name === what && lacking === token);

export const programTable = (): string => {
  const lines = Object.values(programDifferences).map(
    ({ program, what, lacking, why }) => `| ${program} | ${what} | ${lacking} | ${why} |`,
  );
  return ['| program | what | does not go with | why |', '|---|---|---|---|', ...lines].join('\n');
};
