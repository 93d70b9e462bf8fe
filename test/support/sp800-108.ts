// Parameters for the KDFs of SP 800-108, written as the standard's structures are (PKCS#11 3.1,
// section 6.42), and NIST's answers.
import { CKK, PRF_DATA } from '../../provider/schema/constants.ts';
import { CKM } from '../../provider/schema/mechanisms.ts';
import type { Mechanism, MechanismParameter, PrfData } from '../../provider/schema/types.ts';
import { mech } from './session-calls.ts';

export type Parameter = Extract<MechanismParameter, { kind: 'sp800' }>;
const nothing = new Uint8Array(0);
const hex = (text: string): Buffer => Buffer.from(text, 'hex');
export const part = (type: number, rest: Partial<PrfData> = {}): PrfData => ({
  type,
  littleEndian: false,
  bits: 0,
  method: 0,
  bytes: nothing,
  ...rest,
});
export const counter = (bits: number, littleEndian = false): PrfData =>
  part(PRF_DATA.ITERATION_VARIABLE, { bits, littleEndian });
export const previous = part(PRF_DATA.ITERATION_VARIABLE);
export const count = (bits: number, littleEndian = false): PrfData => part(PRF_DATA.COUNTER, { bits, littleEndian });
export const bytes = (value: Uint8Array): PrfData => part(PRF_DATA.BYTE_ARRAY, { bytes: value });
export const length = (bits: number, method: number, littleEndian = false): PrfData =>
  part(PRF_DATA.DKM_LENGTH, { bits, method, littleEndian });
export const kdf = (type: number, prf: number, data: readonly PrfData[], rest: Partial<Parameter> = {}): Mechanism =>
  mech(type, { kind: 'sp800', prf, additionalKeys: 0, iv: nothing, data, ...rest });
export const counterKdf = (prf: number, ...data: PrfData[]) => kdf(CKM.SP800_108_COUNTER_KDF, prf, data);
export const feedbackKdf = (prf: number, iv: Uint8Array, ...data: PrfData[]) =>
  kdf(CKM.SP800_108_FEEDBACK_KDF, prf, data, { iv });
/** CAVP: CounterMode (CAVS 14.4) and FeedbackModeNOzeroiv (CAVS 12.0). */
export const published: readonly {
  readonly name: string;
  readonly keyType: number;
  readonly ki: string;
  readonly mechanism: Mechanism;
  readonly ko: string;
}[] = [
  {
    name: 'CMAC-AES128, 8-bit counter',
    keyType: CKK.AES,
    ki: 'dff1e50ac0b69dc40f1051d46c2b069c',
    mechanism: counterKdf(
      CKM.AES_CMAC,
      counter(8),
      bytes(
        hex(
          'c16e6e02c5a3dcc8d78b9ac1306877761310455b4e41469951d9e6c2245a064b33fd8c3b01203a7824485bf0a64060c4648b707d2607935699316ea5',
        ),
      ),
    ),
    ko: '8be8f0869b3c0ba97b71863d1b9f7813',
  },
  {
    name: 'CMAC-AES128, 32-bit counter, two blocks',
    keyType: CKK.AES,
    ki: '695f1b1a16c949cea51cdf2554ec9d42',
    mechanism: counterKdf(
      CKM.AES_CMAC,
      counter(32),
      bytes(
        hex(
          '4fce5942832a390aa1cbe8a0bf9d202cb799e986c9d6b51f45e4d597a6b57f06a4ebfec6467335d116b7f5f9c5b954062f661820f5db2a5bbb3e0625',
        ),
      ),
    ),
    ko: 'd34b601ec18c34dfa0f9e0b7523e218bdddb9befe8d08b6c0202d75ace0dba89',
  },
  {
    name: 'HMAC-SHA256, 32-bit counter, two blocks',
    keyType: CKK.GENERIC_SECRET,
    ki: 'c4bedbddb66493e7c7259a3bbbc25f8c7e0ca7fe284d92d431d9cd99a0d214ac',
    mechanism: counterKdf(
      CKM.SHA256_HMAC,
      counter(32),
      bytes(
        hex(
          '1c69c54766791e315c2cc5c47ecd3ffab87d0d273dd920e70955814c220eacace6a5946542da3dfe24ff626b4897898cafb7db83bdff3c14fa46fd4b',
        ),
      ),
    ),
    ko: '1da47638d6c9c4d04d74d4640bbd42ab814d9e8cc22f4326695239f96b0693f12d0dd1152cf44430',
  },
  {
    name: 'HMAC-SHA256, feedback, counter after the iteration',
    keyType: CKK.GENERIC_SECRET,
    ki: '93f698e842eed75394d629d957e2e89c6e741f810b623c8b901e38376d068e7b',
    mechanism: feedbackKdf(
      CKM.SHA256_HMAC,
      hex('9f575d9059d3e0c0803f08112f8a806de3c3471912cdf42b095388b14b33508e'),
      previous,
      count(32),
      bytes(
        hex('53b89c18690e2057a1d167822e636de50be0018532c431f7f5e37f77139220d5e042599ebe266af5767ee18cd2c5c19a1f0f80'),
      ),
    ),
    ko: 'bd1476f43a4e315747cf5918e0ea5bc0d98769457477c3ab18b742def0e079a933b756365afb5541f253fee43c6fd788a44041038509e9eeb68f7d65ffbb5f95',
  },
];
