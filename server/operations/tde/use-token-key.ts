// The data path of a TDE application: encrypt, decrypt, sign, verify with a token key. Each use is
// a row; what every use checks is in token-key-pipeline.ts.

import { digestLengths } from '../../base/digests.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { KeyUsage } from '../../domain/key.ts';
import type { TokenMechanism } from '../../domain/token-mechanisms.ts';
import type {
  AeadParameters,
  CipherParameters,
  KeyRef,
  MacParameters,
  RsaEncryptionParameters,
  SignatureParameters,
} from '../../ports/crypto-core.ts';
import type { MessageSeal } from '../../ports/key-ring.ts';
import { createIvClaims } from './iv-claims.ts';
import { requireSwitch } from './require-switch.ts';
import type { PartOfMessage, TdeCaller, TdeOperations } from './tde-operations.ts';
import {
  checkUse,
  isSlowKey,
  type TokenKeyUseRow,
  tokenKeyUse,
  type UsePorts,
  type Wanted,
} from './token-key-pipeline.ts';

const macMechanism = (parameters: MacParameters): TokenMechanism =>
  parameters.algorithm === 'hmac' ? `hmac-${parameters.digest}` : parameters.algorithm;
const paddingMechanisms = { oaep: 'rsa-oaep', pkcs1: 'rsa-pkcs1-encryption' } as const satisfies Record<
  RsaEncryptionParameters['padding'],
  TokenMechanism
>;

/** The one key of a use, whose parameters name the mechanism. */
const keyOf =
  <P>(by: (parameters: P) => TokenMechanism) =>
  ({
    handle,
    use,
    parameters,
  }: {
    readonly handle: number;
    readonly use: KeyUsage;
    readonly parameters: P;
  }): readonly [Wanted] => [{ handle, use, by: by(parameters) }];

interface Call<P> {
  readonly handle: number;
  readonly parameters: P;
  readonly input: Uint8Array;
}
interface PartCall<P> {
  readonly handle: number;
  readonly parameters: P;
  readonly part: PartOfMessage;
}

const wrongSignature = (): ServiceError => new ServiceError('invalid-ciphertext', 'the signature is wrong');

/** The whole MAC; the caller wipes it. */
const macOf = ({ core }: UsePorts, reference: KeyRef, parameters: MacParameters, input: Uint8Array): Buffer => {
  const out = Buffer.alloc(parameters.algorithm === 'hmac' ? digestLengths[parameters.digest] : 16);
  return out.subarray(0, core.mac(reference, parameters, input, out));
};

/** What seals the state of a message that comes in parts. Null: this node has no such key. */
const sealOf = (
  { ring }: UsePorts,
  { application }: TdeCaller,
  objectId: string,
  { state }: PartOfMessage,
): MessageSeal | null =>
  ring.messageSeal({ tenantId: application.tenantId, applicationId: application.id, objectId }, state);

const requiredSeal = (...asked: Parameters<typeof sealOf>): MessageSeal => {
  const seal = sealOf(...asked);
  if (seal !== null) return seal;
  throw new ServiceError('conflict', 'an erasure run has replaced the key that sealed the state of this message', {
    reason: 'message-ended',
    hint: 'begin the message again',
  });
};

/** Another node may have made the key of a state a moment ago. */
const prepareParts =
  (ports: UsePorts): NonNullable<TokenKeyUseRow<{ readonly part: PartOfMessage }, never>['prepare']> =>
  async ({ caller, input }) => {
    if (sealOf(ports, caller, '', input.part) === null) await ports.ring.refresh(ports.store.read);
    return undefined;
  };

const cipherRows = (ports: UsePorts) => {
  const { core } = ports;
  const { claimIv, claimPart } = createIvClaims(core, ports.directory);
  const mayRepeat = ({ application }: TdeCaller): boolean => application.compatibility.includes('repeated-ivs');
  const message: TokenKeyUseRow<Call<CipherParameters> & { readonly use: 'encrypt' | 'decrypt' }, Buffer> = {
    wants: keyOf(({ algorithm }) => algorithm),
    work: ({ caller, input: { use, parameters, input } }, [{ reference, loaded }]) => {
      const out = Buffer.alloc(core.cipherLength(use, parameters, input.length));
      const length = core.cipher(reference, use, parameters, input, out);
      // Nothing leaves when it is refused; what was refused before used up nothing.
      if (use === 'encrypt' && !mayRepeat(caller)) claimIv(loaded.object, parameters, input);
      return length === out.length ? out : out.subarray(0, length);
    },
  };
  const part: TokenKeyUseRow<
    PartCall<AeadParameters> & { readonly use: 'encrypt' | 'decrypt' | 'check' },
    { readonly state: Buffer; readonly output: Buffer }
  > = {
    wants: ({ handle, use, parameters }) => [
      { handle, use: use === 'encrypt' ? 'encrypt' : 'decrypt', by: parameters.algorithm },
    ],
    prepare: prepareParts(ports),
    work: (
      { caller, input: { use, parameters, part } },
      [
        {
          reference,
          loaded: { object },
        },
      ],
    ) => {
      const tag = use === 'encrypt' ? parameters.tagLength : -parameters.tagLength;
      const length = Math.max(0, use === 'check' ? 0 : part.input.length + (part.last ? tag : 0));
      const output = Buffer.alloc(length);
      const seal = requiredSeal(ports, caller, object.id, part);
      const [state, at] = core.cipherPart(reference, use, parameters, { ...part, ...seal.part }, output);
      if (use === 'encrypt' && !mayRepeat(caller)) claimPart(object, parameters, part, at);
      return { state: seal.carry(state), output };
    },
  };
  return { message: tokenKeyUse(ports, message), part: tokenKeyUse(ports, part) };
};

const macRows = (ports: UsePorts) => {
  const { core } = ports;
  const sign: TokenKeyUseRow<Call<MacParameters> & { readonly use: 'sign' }, Buffer> = {
    wants: keyOf(macMechanism),
    work: ({ input: { parameters, input } }, [{ reference }]) => macOf(ports, reference, parameters, input),
  };
  interface Signed {
    readonly use: 'verify';
    readonly signature: Uint8Array;
    readonly length: number | undefined;
  }
  const verify: TokenKeyUseRow<Call<MacParameters> & Signed, boolean> = {
    wants: keyOf(macMechanism),
    work: ({ input: { parameters, input, signature, length } }, [{ reference }]) => {
      const whole = macOf(ports, reference, parameters, input);
      const expected = whole.subarray(0, length ?? whole.length);
      return signature.length === expected.length && core.timingSafeEqual(expected, signature);
    },
  };
  const part: TokenKeyUseRow<PartCall<MacParameters> & { readonly use: 'sign' | 'verify' }, Buffer> = {
    wants: keyOf(macMechanism),
    prepare: prepareParts(ports),
    work: (
      { caller, input: { parameters, part } },
      [
        {
          reference,
          loaded: { object },
        },
      ],
    ) => {
      const seal = requiredSeal(ports, caller, object.id, part);
      const answer = core.macPart(reference, parameters, { ...part, ...seal.part });
      return part.last ? answer : seal.carry(answer);
    },
  };
  return { sign: tokenKeyUse(ports, sign), verify: tokenKeyUse(ports, verify), part: tokenKeyUse(ports, part) };
};

const privateKeyRows = (ports: UsePorts) => {
  const { core } = ports;
  const decrypt: TokenKeyUseRow<Call<RsaEncryptionParameters> & { readonly use: 'decrypt' }, Buffer> = {
    permits: (caller, { parameters }) => {
      if (parameters.padding === 'pkcs1') requireSwitch(caller, ['rsa-pkcs1-encryption']);
    },
    wants: keyOf(({ padding }) => paddingMechanisms[padding]),
    isSlow: isSlowKey,
    work: ({ input: { parameters, input } }, [{ reference }], _prepared, isSlow) =>
      (isSlow ? core.rsaDecryptLater : core.rsaDecrypt)(reference, parameters, input),
  };
  const sign: TokenKeyUseRow<Call<SignatureParameters> & { readonly use: 'sign' }, Buffer> = {
    // RSA-PSS names its digest, so the switch for SHA-1 is checked here. For other signatures the
    // service sees only the finished digest, and the agent refuses SHA-1.
    permits: (caller, { parameters }) => {
      if (parameters.algorithm === 'rsa-pss' && parameters.digest === 'sha1')
        requireSwitch(caller, ['sha1-signatures']);
    },
    wants: keyOf(({ algorithm }) => algorithm),
    isSlow: isSlowKey,
    work: ({ input: { parameters, input } }, [{ reference }], _prepared, isSlow) =>
      (isSlow ? core.signLater : core.sign)(reference, parameters, input),
  };
  return { decrypt: tokenKeyUse(ports, decrypt), sign: tokenKeyUse(ports, sign) };
};

export const tokenKeyUses = (
  ports: UsePorts,
): Pick<
  TdeOperations,
  | 'checkUse'
  | 'encrypt'
  | 'decrypt'
  | 'cipherPart'
  | 'decryptWithPrivateKey'
  | 'sign'
  | 'signPart'
  | 'signWithPrivateKey'
  | 'verify'
  | 'verifyPart'
> => {
  const { core } = ports;
  const cipher = cipherRows(ports);
  const mac = macRows(ports);
  const privateKey = privateKeyRows(ports);
  return {
    checkUse: (caller, handle, use) => checkUse(ports, caller, handle, use),
    encrypt: (caller, handle, parameters, input) =>
      cipher.message(caller, { handle, use: 'encrypt', parameters, input }),
    decrypt: (caller, handle, parameters, input) =>
      cipher.message(caller, { handle, use: 'decrypt', parameters, input }),
    cipherPart: (caller, handle, use, parameters, part) => cipher.part(caller, { handle, use, parameters, part }),
    decryptWithPrivateKey: (caller, handle, parameters, input) =>
      privateKey.decrypt(caller, { handle, use: 'decrypt', parameters, input }),
    signWithPrivateKey: (caller, handle, parameters, input) =>
      privateKey.sign(caller, { handle, use: 'sign', parameters, input }),
    sign: (caller, handle, parameters, input) => mac.sign(caller, { handle, use: 'sign', parameters, input }),
    signPart: (caller, handle, parameters, part) => mac.part(caller, { handle, use: 'sign', parameters, part }),
    verifyPart: async (caller, handle, parameters, part, signature, length) => {
      const answer = await mac.part(caller, { handle, use: 'verify', parameters, part });
      if (!part.last) return answer;
      const expected = answer.subarray(0, Math.min(answer.length, length ?? answer.length));
      const isRight = signature?.length === expected.length && core.timingSafeEqual(expected, signature);
      core.wipe(answer);
      if (!isRight) throw wrongSignature();
      return Buffer.alloc(0);
    },
    verify: async (caller, handle, parameters, input, signature, length) => {
      if (!(await mac.verify(caller, { handle, use: 'verify', parameters, input, signature, length })))
        throw wrongSignature();
    },
  };
};
