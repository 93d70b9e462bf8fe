// Key derivation in counter and feedback mode (SP 800-108; PKCS#11 mechanisms 3.0, section 2.42).
import type { MacParameters, Sp800108Parameters } from '../../../addon/core.ts';
import { digestLengths } from '../../../server/base/digests.ts';
import { DKM_LENGTH, PRF_DATA } from '../../schema/constants.ts';
import { CKM } from '../../schema/mechanisms.ts';
import type { PrfData } from '../../schema/types.ts';
import { parameterInvalid } from '../return-values.ts';
import { families } from './digest-families.ts';
import type { DeriveRow } from './mechanism-row.ts';

const prfs: ReadonlyMap<number, MacParameters> = new Map<number, MacParameters>([
  [CKM.AES_CMAC, { algorithm: 'aes-cmac' }],
  ...families.map(({ hmac: type, name }) => [type, { algorithm: 'hmac', digest: name }] as const),
]);

const inWholeBytes = (bits: number, most: number): boolean => bits >= 8 && bits <= most && bits % 8 === 0;

/**
 * SP 800-108 (3.0, section 2.42): one iteration variable, at most one more counter and one length,
 * any number of bytes.
 */
export const blockKdf =
  (feedback: boolean): DeriveRow =>
  (parameter) => {
    if (parameter?.kind !== 'sp800') throw parameterInvalid();
    const prf = prfs.get(parameter.prf);
    const { data, iv, additionalKeys } = parameter;
    // One call derives one key here.
    if (prf === undefined || additionalKeys !== 0) throw parameterInvalid();
    const of = (type: number): readonly PrfData[] => data.filter((each) => each.type === type);
    const [variables, counters, lengths] = [
      of(PRF_DATA.ITERATION_VARIABLE),
      of(PRF_DATA.COUNTER),
      of(PRF_DATA.DKM_LENGTH),
    ];
    // The variable is the counter; in feedback mode it is the block before, and has no format.
    const numbered = feedback ? counters : variables;
    const fits =
      variables.length === 1 &&
      counters.length <= (feedback ? 1 : 0) &&
      lengths.length <= 1 &&
      variables.length + counters.length + lengths.length + of(PRF_DATA.BYTE_ARRAY).length === data.length &&
      numbered.every(({ bits }) => inWholeBytes(bits, 32)) &&
      lengths.every(
        ({ bits, method }) => inWholeBytes(bits, 64) && (method === DKM_LENGTH.KEYS || method === DKM_LENGTH.SEGMENTS),
      ) &&
      (!feedback || variables.every(({ bits }) => bits === 0)) &&
      iv.length <= mostBlockData &&
      data.reduce((sum, { bytes }) => sum + bytes.length, 8) <= mostBlockData;
    if (!fits) throw parameterInvalid();
    return { way: 'sp800-108', prf, partsFor: (bytes) => partsFor(prf, data, feedback, iv, bytes) };
  };
/** Bytes of what the core takes for one block, and of an IV. */
const mostBlockData = 4096;

const numberBytes = (value: number, bits: number, littleEndian: boolean): Buffer => {
  const bytes = Buffer.from(
    value
      .toString(16)
      .padStart(bits / 4, '0')
      .slice(-bits / 4),
    'hex',
  );
  return littleEndian ? bytes.reverse() : bytes;
};

/** What the core's PRF takes when the derived key has so many bytes. */
const partsFor = (
  prf: MacParameters,
  data: readonly PrfData[],
  feedback: boolean,
  iv: Uint8Array,
  bytes: number,
): Sp800108Parameters => {
  const block = prf.algorithm === 'hmac' ? digestLengths[prf.digest] : 16;
  const fixed: Uint8Array[] = [];
  let length = 0;
  let [counterBytes, littleEndian, counterFirst] = [0, false, false];
  let counterAt: number | undefined;
  let previousAt: number | undefined;
  for (const each of data) {
    if (each.type === PRF_DATA.ITERATION_VARIABLE && feedback) {
      previousAt = length;
      counterFirst = counterAt === length;
    } else if (each.type === PRF_DATA.ITERATION_VARIABLE || each.type === PRF_DATA.COUNTER) {
      counterAt = length;
      counterBytes = each.bits / 8;
      littleEndian = each.littleEndian;
    } else {
      const whole = each.method === DKM_LENGTH.SEGMENTS ? Math.ceil(bytes / block) * block : bytes;
      const isLength = each.type === PRF_DATA.DKM_LENGTH;
      const added = isLength ? numberBytes(whole * 8, each.bits, each.littleEndian) : each.bytes;
      fixed.push(added);
      length += added.length;
    }
  }
  return { data: Buffer.concat(fixed), counterAt, counterBytes, littleEndian, previousAt, counterFirst, iv };
};
