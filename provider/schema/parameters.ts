// The parameters of mechanisms: one row for each form, with its structure of Cryptoki and the
// members that travel, in their order on the wire. From here follow the library's table
// (module/entry/gen/tables.c), what the agent reads (agent/codec/reader.ts), the type that handlers
// see, and the table in PROTOCOL.md. A mechanism names its form in mechanisms.ts.

/**
 * One row of CK_SP800_108_*_PARAMS: `type` a CK_SP800_108_ number. The next three are of a counter
 * or a length, and 0 for others; `method` of a length.
 */
export interface PrfData {
  readonly type: number;
  readonly littleEndian: boolean;
  readonly bits: number;
  readonly method: number;
  readonly bytes: Uint8Array;
}

/** What a member is to handlers. Bytes are copies. */
interface MemberValues {
  ulong: number;
  flag: boolean;
  bytes: Uint8Array;
  array: Uint8Array;
  prfData: readonly PrfData[];
}
export type MemberKind = keyof MemberValues;

interface Member<K extends MemberKind = MemberKind> {
  readonly kind: K;
  /** The member's name in the structure; '' where the parameter is not a structure. */
  readonly c: string;
  /** For bytes and rows behind a pointer: the member that tells how many there are. */
  readonly count?: string;
}

const member =
  <K extends MemberKind>(kind: K) =>
  (c = '', count?: string): Member<K> => ({ kind, c, ...(count === undefined ? {} : { count }) });
const [ulong, flag] = [member('ulong'), member('flag')];
/** A pointer and a length. */
const bytes = member('bytes');
/** Sixteen bytes within the structure. */
const array = member('array');
const prfData = member('prfData');

const form = <M extends Readonly<Record<string, Member>>>(c: string, members: M) => ({ c, members });

/**
 * The form's number on the wire, in our own dialect, is its place: a new one goes to the end.
 * p11-kit has forms up to `ecdh1`.
 */
export const parameterForms = {
  none: form('', {}),
  /** An IV, or any flat parameter of a mechanism that has no row. */
  bytes: form('', { bytes: bytes() }),
  /** CK_MAC_GENERAL_PARAMS: length of the MAC in bytes. */
  ulong: form('CK_ULONG', { value: ulong() }),
  ctr: form('CK_AES_CTR_PARAMS', { counterBits: ulong('ulCounterBits'), block: array('cb') }),
  /** `ivBits` is 0 or garbage from many callers: trust `iv.length`. */
  gcm: form('CK_GCM_PARAMS', {
    iv: bytes('pIv', 'ulIvLen'),
    ivBits: ulong('ulIvBits'),
    aad: bytes('pAAD', 'ulAADLen'),
    tagBits: ulong('ulTagBits'),
  }),
  /** `hash` is a CKM_, `mgf` a CKG_, here and below; `saltLength` in bytes. */
  pss: form('CK_RSA_PKCS_PSS_PARAMS', { hash: ulong('hashAlg'), mgf: ulong('mgf'), saltLength: ulong('sLen') }),
  oaep: form('CK_RSA_PKCS_OAEP_PARAMS', {
    hash: ulong('hashAlg'),
    mgf: ulong('mgf'),
    source: ulong('source'),
    label: bytes('pSourceData', 'ulSourceDataLen'),
  }),
  ecdh1: form('CK_ECDH1_DERIVE_PARAMS', {
    kdf: ulong('kdf'),
    shared: bytes('pSharedData', 'ulSharedDataLen'),
    publicData: bytes('pPublicData', 'ulPublicDataLen'),
  }),
  /** `saltType` is a CKF_HKDF_SALT_. */
  hkdf: form('CK_HKDF_PARAMS', {
    extract: flag('bExtract'),
    expand: flag('bExpand'),
    hash: ulong('prfHashMechanism'),
    saltType: ulong('ulSaltType'),
    salt: bytes('pSalt', 'ulSaltLen'),
    saltKey: ulong('hSaltKey'),
    info: bytes('pInfo', 'ulInfoLen'),
  }),
  /** `dataLength` is the message's without its MAC, both in bytes. */
  ccm: form('CK_CCM_PARAMS', {
    dataLength: ulong('ulDataLen'),
    nonce: bytes('pNonce', 'ulNonceLen'),
    aad: bytes('pAAD', 'ulAADLen'),
    macLength: ulong('ulMACLen'),
  }),
  eddsa: form('CK_EDDSA_PARAMS', { prehash: flag('phFlag'), context: bytes('pContextData', 'ulContextDataLen') }),
  data: form('CK_KEY_DERIVATION_STRING_DATA', { data: bytes('pData', 'ulLen') }),
  ivdata: form('CK_AES_CBC_ENCRYPT_DATA_PARAMS', { iv: array('iv'), data: bytes('pData', 'length') }),
  /**
   * `prf` is a CKM_; `additionalKeys` counts the keys that are asked for next to the one that
   * C_DeriveKey returns.
   */
  sp800: form('CK_SP800_108_FEEDBACK_KDF_PARAMS', {
    prf: ulong('prfType'),
    additionalKeys: ulong('ulAdditionalDerivedKeys'),
    iv: bytes('pIV', 'ulIVLen'),
    data: prfData('pDataParams', 'ulNumberOfDataParams'),
  }),
} as const satisfies Readonly<
  Record<string, { readonly c: string; readonly members: Readonly<Record<string, Member>> }>
>;

export type ParameterForm = keyof typeof parameterForms;
export const parameterFormNames = Object.keys(parameterForms) as readonly ParameterForm[];
export const membersOf = (form: ParameterForm): readonly (readonly [name: string, Member])[] =>
  Object.entries<Member>(parameterForms[form].members);

type Members<F extends ParameterForm> = (typeof parameterForms)[F]['members'];
type Values<M> = { readonly [N in keyof M]: M[N] extends Member<infer K> ? MemberValues[K] : never };
/** A parameter as handlers see it. */
export type MechanismParameter = {
  [F in Exclude<ParameterForm, 'none'>]: { readonly kind: F } & Values<Members<F>>;
}[Exclude<ParameterForm, 'none'>];
