// The structures that Cryptoki fills for its caller (PKCS#11 2.40, section 3), field by field in
// the order of pkcs11t.h, which is also the order on the wire: v = CK_VERSION, u = CK_ULONG, sN =
// blank-padded text of N bytes.

/** `c` is the field's name in pkcs11t.h. */
interface Field {
  readonly c: string;
  readonly wire: 'v' | 'u' | `s${number}`;
}
const version = (c: string) => ({ c, wire: 'v' }) as const;
const number = (c: string) => ({ c, wire: 'u' }) as const;
const text = <N extends number>(c: string, length: N) => ({ c, wire: `s${length}` as `s${N}` }) as const;

export const structs = {
  CK_INFO: {
    cryptokiVersion: version('cryptokiVersion'),
    manufacturer: text('manufacturerID', 32),
    flags: number('flags'),
    description: text('libraryDescription', 32),
    libraryVersion: version('libraryVersion'),
  },
  CK_SLOT_INFO: {
    description: text('slotDescription', 64),
    manufacturer: text('manufacturerID', 32),
    flags: number('flags'),
    hardwareVersion: version('hardwareVersion'),
    firmwareVersion: version('firmwareVersion'),
  },
  CK_TOKEN_INFO: {
    label: text('label', 32),
    manufacturer: text('manufacturerID', 32),
    model: text('model', 16),
    serialNumber: text('serialNumber', 16),
    flags: number('flags'),
    maxSessionCount: number('ulMaxSessionCount'),
    sessionCount: number('ulSessionCount'),
    maxRwSessionCount: number('ulMaxRwSessionCount'),
    rwSessionCount: number('ulRwSessionCount'),
    maxPinLength: number('ulMaxPinLen'),
    minPinLength: number('ulMinPinLen'),
    totalPublicMemory: number('ulTotalPublicMemory'),
    freePublicMemory: number('ulFreePublicMemory'),
    totalPrivateMemory: number('ulTotalPrivateMemory'),
    freePrivateMemory: number('ulFreePrivateMemory'),
    hardwareVersion: version('hardwareVersion'),
    firmwareVersion: version('firmwareVersion'),
    utcTime: text('utcTime', 16),
  },
  CK_MECHANISM_INFO: {
    minKeySize: number('ulMinKeySize'),
    maxKeySize: number('ulMaxKeySize'),
    flags: number('flags'),
  },
  CK_SESSION_INFO: {
    slot: number('slotID'),
    state: number('state'),
    flags: number('flags'),
    deviceError: number('ulDeviceError'),
  },
} as const satisfies Record<string, Record<string, Field>>;

export type StructName = keyof typeof structs;

export interface Version {
  readonly major: number;
  readonly minor: number;
}

/**
 * The structures as handlers write them: text is padded or cut by the codec, `-1` is
 * CK_UNAVAILABLE_INFORMATION.
 */
export type Structs = {
  readonly [S in StructName]: {
    readonly [F in keyof (typeof structs)[S]]: (typeof structs)[S][F] extends { readonly wire: 'v' }
      ? Version
      : (typeof structs)[S][F] extends { readonly wire: 'u' }
        ? number
        : string;
  };
};
