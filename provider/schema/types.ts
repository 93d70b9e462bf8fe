// The vocabulary in which calls.ts declares Cryptoki: one constructor per kind of argument, the
// values that handlers see, and the inference from a row to its handler's input and output. No wire
// bytes here (codec/), no C (generate.ts).
//
// Who owns which bytes. `bytes` arguments and secret attribute values are views on the request
// frame: valid during the synchronous part of a handler only, so a handler that awaits copies them
// first (and wipes the copy). Everything else, the other attribute values and mechanism parameters
// included, belongs to the handler and may be kept. The input object itself is reused by calls
// marked `hot`: take it apart in the parameter list, do not keep it.
import type { MechanismParameter } from './parameters.ts';
import type { StructName, Structs } from './structs.ts';

export type { MechanismParameter, PrfData } from './parameters.ts';

/**
 * CK_UNAVAILABLE_INFORMATION, CK_ULONG's all-ones: in outputs `-1` is written as it, in inputs it
 * reads as `-1`.
 */
export const unavailableInformation = -1;

/**
 * A boolean is CK_BBOOL, a number or bigint CK_ULONG (bigint only above 2^53 - 1), bytes also a
 * CK_DATE (8 or 0 bytes).
 */
export type AttributeValue = boolean | number | bigint | Uint8Array | readonly number[] | readonly Attribute[];

/** One row of a template. */
export interface Attribute {
  readonly type: number;
  /**
   * Decoded by the attribute's kind (attributes.ts). `null`: the caller gave no value
   * (CK_UNAVAILABLE_INFORMATION as length).
   */
  readonly value: AttributeValue | null;
  /** The caller's ulValueLen in bytes; -1 when unavailable. */
  readonly length: number;
}

/** One row of C_GetAttributeValue's template. */
export interface AttributeQuery {
  readonly type: number;
  /** Bytes the caller has room for; `null` when only the length is asked. */
  readonly capacity: number | null;
}

/**
 * The answer to C_GetAttributeValue: one value per queried row, in order. `null` is
 * CK_UNAVAILABLE_INFORMATION (sensitive, or not an attribute of this object). The codec fits values
 * to capacities and turns CKR_OK into CKR_BUFFER_TOO_SMALL where needed; `rv` carries
 * CKR_ATTRIBUTE_SENSITIVE or CKR_ATTRIBUTE_TYPE_INVALID.
 */
export interface AttributeAnswers {
  readonly rv: number;
  readonly values: readonly (AttributeValue | LengthOnly | null)[];
}

/** A mechanism with its parameter, decoded by its form (parameters.ts). Bytes are copies. */
export interface Mechanism {
  readonly type: number;
  readonly parameter: MechanismParameter | null;
}

/**
 * What a message-based function is given in addition to the data (3.0): CK_GCM_MESSAGE_PARAMS.
 * Bytes are copies.
 */
export interface MessageParameter {
  readonly kind: 'gcm';
  readonly iv: Uint8Array;
  readonly ivFixedBits: number;
  /** A CKG_ generator of IVs. */
  readonly ivGenerator: number;
  /** The tag to check; empty where none is required. */
  readonly tag: Uint8Array;
  readonly tagBits: number;
}

/**
 * What an encryption writes back through the parameter's pointers; null leaves them as they are.
 */
export interface MessageResult {
  readonly iv: Uint8Array | null;
  readonly tag: Uint8Array | null;
}

/** Where the caller requests bytes. */
export interface OutBuffer {
  /**
   * Bytes the caller has room for; `null` when only the length is asked: answer with `LengthOnly`.
   * Of a `hot` call it is valid during the synchronous part of the handler only.
   */
  readonly capacity: number | null;
  /**
   * A view into the reply frame to write into without a copy: min(capacity, rest of the frame)
   * bytes long. Valid during the synchronous part of the handler only.
   */
  readonly space: Buffer;
}

/**
 * The length of bytes that are not sent. Of an output: for a size query, and when the buffer is too
 * small. Of an input: `data` that follows in parts because a message does not carry it
 * (PROTOCOL.md, "Large data").
 */
export class LengthOnly {
  readonly length: number;
  constructor(length: number) {
    this.length = length;
  }
}

/**
 * A number: that many bytes were written into `space`. An array: copied. `LengthOnly`: see there.
 */
export type BytesOutput = number | Uint8Array | LengthOnly;

/** What a handler throws to answer with an error. */
export class CryptokiError extends Error {
  readonly rv: number;
  constructor(rv: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CryptokiError';
    this.rv = rv;
  }
}

// --- arguments -----------------------------------------------------------------------------------

interface KindInputs {
  ulong: number;
  flag: boolean;
  bytes: Uint8Array;
  data: Uint8Array | LengthOnly;
  label: Uint8Array;
  template: readonly Attribute[];
  mechanism: Mechanism | null;
  messageMechanism: Mechanism | null;
  out: OutBuffer;
  fill: OutBuffer;
  /** How many the caller has room for; `null` when only the count is asked. */
  list: number | null;
  /** The most the caller takes in this call. */
  batch: number;
  query: readonly AttributeQuery[];
  /** Null: the caller gave none, or none that a message can have. */
  seal: MessageParameter | null;
  open: MessageParameter | null;
}
interface KindOutputs {
  out: BytesOutput;
  fill: BytesOutput;
  list: readonly number[];
  batch: readonly number[];
  query: AttributeAnswers;
  result: number;
  seal: MessageResult;
}

export type Kind = keyof KindInputs | keyof KindOutputs | 'struct' | 'ignored';

/**
 * `c` is the C type of the argument (of its element, for arrays); `struct` names the structure of a
 * `struct` argument.
 */
export interface Arg<
  K extends Kind = Kind,
  N extends string = string,
  S extends StructName | null = StructName | null,
> {
  readonly kind: K;
  readonly name: N;
  readonly c: string;
  readonly struct: S;
  /** For a `seal` or `open` only: when the parameter's tag is written or read. */
  readonly tag?: TagUse;
}

/** Where a tag goes with this call: always, never, or when the call's flags end the message. */
export type TagUse = 'now' | 'never' | 'at-end';

const arg = <K extends Kind, N extends string>(kind: K, name: N, c: string): Arg<K, N, null> => ({
  kind,
  name,
  c,
  struct: null,
});

/** CK_ULONG or one of its typedefs, by value. Wire: u. */
export const ulong = <N extends string>(name: N, c = 'CK_ULONG') => arg('ulong', name, c);
export const session = ulong('session', 'CK_SESSION_HANDLE');
export const slot = ulong('slot', 'CK_SLOT_ID');
export const handle = <N extends string>(name: N) => ulong(name, 'CK_OBJECT_HANDLE');
/** CK_BBOOL. Wire: y. */
export const flag = <N extends string>(name: N) => arg('flag', name, 'CK_BBOOL');
/** Pointer and length. A null pointer with length 0 arrives as no bytes. Wire: ay. */
export const bytes = <N extends string>(name: N) => arg('bytes', name, 'CK_BYTE');
/**
 * Pointer and length of data of any length: more than a message carries arrives as its length
 * alone, and then in parts. Wire: ay.
 */
export const data = <N extends string>(name: N) => arg('data', name, 'CK_BYTE');
/** A blank-padded label of 32 bytes. Wire: z. */
export const label = <N extends string>(name: N) => arg('label', name, 'CK_UTF8CHAR');
/** Attributes with values. Wire: aA. */
export const template = <N extends string>(name: N) => arg('template', name, 'CK_ATTRIBUTE');
/** CK_MECHANISM_PTR; null cancels an operation (3.0). Wire: M. */
export const mechanism = arg('mechanism', 'mechanism', 'CK_MECHANISM');
/** CK_MECHANISM_PTR of a message-based function: its parameter comes with each message. Wire: M. */
export const messageMechanism = arg('messageMechanism', 'mechanism', 'CK_MECHANISM');
/**
 * The parameter of an encrypted message: an IV that may be written back, and the place for a tag.
 * Wire: G, answered by g.
 */
export const seal = (tag: TagUse): Arg<'seal', 'parameter', null> => ({ ...arg('seal', 'parameter', 'CK_VOID'), tag });
/** The parameter of a message that is decrypted. Wire: G. */
export const open = (tag: TagUse): Arg<'open', 'parameter', null> => ({ ...arg('open', 'parameter', 'CK_VOID'), tag });
/** Output bytes: pointer and pointer to a length. Wire: fy, answered by ay. */
export const out = <N extends string>(name: N) => arg('out', name, 'CK_BYTE');
/** Output bytes of exactly the length asked: pointer and length. Wire: fy, answered by ay. */
export const fill = <N extends string>(name: N) => arg('fill', name, 'CK_BYTE');
/** Output list: pointer and pointer to a count. Wire: fu, answered by au. */
export const list = <N extends string>(name: N, c: string) => arg('list', name, c);
/**
 * Output list with its room by value: pointer, maximum, pointer to a count. Wire: fu, answered by
 * au.
 */
export const batch = <N extends string>(name: N, c: string) => arg('batch', name, c);
/** C_GetAttributeValue's template. Wire: fA, answered by aAu. */
export const query = <N extends string>(name: N) => arg('query', name, 'CK_ATTRIBUTE');
/** Pointer to one CK_ULONG that receives a result. Wire: answered by u. */
export const result = <N extends string>(name: N, c = 'CK_ULONG') => arg('result', name, c);
/** Pointer to a structure that receives the answer. */
export const struct = <N extends string, S extends StructName>(name: N, of: S): Arg<'struct', N, S> => ({
  kind: 'struct',
  name,
  c: of,
  struct: of,
});
/** A C argument that never travels. */
export const ignored = <N extends string>(name: N, c: string) => arg('ignored', name, c);

// --- rows ----------------------------------------------------------------------------------------

/** The operations that a session can have running, one of each. */
export type OperationKind =
  | 'find'
  | 'encrypt'
  | 'decrypt'
  | 'digest'
  | 'sign'
  | 'signRecover'
  | 'verify'
  | 'verifyRecover'
  | 'messageEncrypt'
  | 'messageDecrypt';

/**
 * `C_Encrypt` goes in `C_EncryptUpdate`s and a `C_EncryptFinal`; of messages there is a call that
 * begins one, too.
 */
export interface CallParts {
  readonly begin?: string;
  readonly part: string;
  readonly last?: string;
}

export interface CallOptions {
  /** The first version of the standard that has it; 2.40 when absent. */
  readonly since?: '3.0';
  /** The C entry point is written by hand (module/entry/special_entries.c). */
  readonly byHand?: true;
  /** Answered only by the library: never on the wire. */
  readonly local?: true;
  /** Decoded without allocation into a reused input. */
  readonly hot?: true;
  /**
   * Sent again after the agent was lost only if it had not been sent: doing it twice is not the
   * same as once.
   */
  readonly once?: true;
  /**
   * Starts, continues or ends an operation: what the library may repeat after the agent was
   * restarted.
   */
  readonly starts?: OperationKind;
  readonly continues?: readonly OperationKind[];
  readonly ends?: OperationKind;
  /** Leaves keys, sessions and the login as they are, though it does none of these three. */
  readonly quiet?: true;
  /**
   * What carries its data in parts when one message does not: the calls for a part and, where it is
   * not the same, for the end.
   */
  readonly parts?: CallParts;
  /**
   * Looks for prime numbers, which takes as long as it takes: it is waited for ten times as long as
   * other calls.
   */
  readonly slow?: true;
}

export interface Call<A extends readonly Arg[] = readonly Arg[]> extends CallOptions {
  /** p11-kit's call id; from 128 on our own. 0 for calls that never travel. */
  readonly code: number;
  readonly args: A;
}

export const call = <const A extends readonly Arg[]>(code: number, args: A, options: CallOptions = {}): Call<A> => ({
  code,
  args,
  ...options,
});

// --- inference -----------------------------------------------------------------------------------

type InputsOf<A extends Arg> = {
  readonly [Each in A as Each['kind'] extends keyof KindInputs
    ? Each['name']
    : never]: Each['kind'] extends keyof KindInputs ? KindInputs[Each['kind']] : never;
};
type OutputOf<A extends Arg> = A['kind'] extends keyof KindOutputs
  ? KindOutputs[A['kind']]
  : A extends Arg<'struct', string, infer S extends StructName>
    ? Structs[S]
    : never;
type OutputsOf<A extends Arg> = {
  readonly [Each in A as Each['kind'] extends keyof KindOutputs | 'struct' ? Each['name'] : never]: OutputOf<Each>;
};
type IsUnion<T, U = T> = [T] extends [never] ? false : T extends U ? ([U] extends [T] ? false : true) : never;

/** What a handler gets: every argument that travels to the agent, by name. */
export type InputOf<C extends Call> = InputsOf<C['args'][number]>;
/** What a handler gives: nothing, the one output itself, or an object when there are several. */
export type CallOutput<C extends Call> = keyof OutputsOf<C['args'][number]> extends never
  ? // biome-ignore lint/suspicious/noConfusingVoidType: a handler that gives nothing simply ends
    void
  : IsUnion<keyof OutputsOf<C['args'][number]>> extends true
    ? OutputsOf<C['args'][number]>
    : OutputsOf<C['args'][number]>[keyof OutputsOf<C['args'][number]>];
