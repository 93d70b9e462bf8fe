// The encoder and decoder of heads (tde.ts), shared by the agent and the service. A declaration
// lists members; the types of the value and of its JSON follow from it. Bytes are Uint8Arrays in
// values and Base64 in JSON. Decoding checks everything, sizes first, and names the member that
// does not fit, never its value.

import { ServiceError } from '../base/service-error.ts';

export interface Codec<Value, Wire> {
  encode(value: Value): Wire;
  /** Throws 'validation'. `path`: where in the head it stands. */
  decode(wire: unknown, path: string): Value;
}
// biome-ignore lint/suspicious/noExplicitAny: any codec; the types of its value are inferred.
export type AnyCodec = Codec<any, any>;
export type ValueOf<C extends AnyCodec> = ReturnType<C['decode']>;
export type WireOf<C extends AnyCodec> = ReturnType<C['encode']>;

const absent: unique symbol = Symbol('absent');
type Optional<C extends AnyCodec> = C & { readonly [absent]: 'may be absent' };
const given: unique symbol = Symbol('given');
/** A member that does not travel: the decoder adds it. */
interface Given<Value> extends Codec<Value, never> {
  readonly [given]: Value;
}

export type Members = Readonly<Record<string, AnyCodec>>;
type OptionalName<M extends Members> = {
  [K in keyof M]: M[K] extends { readonly [absent]: unknown } ? K : never;
}[keyof M];
type GivenName<M extends Members> = {
  [K in keyof M]: M[K] extends { readonly [given]: unknown } ? K : never;
}[keyof M];
type Flat<T> = { [K in keyof T]: T[K] };
export type ValueOfMembers<M extends Members> = Flat<
  { readonly [K in Exclude<keyof M, OptionalName<M>>]: ValueOf<M[K]> } & {
    readonly [K in OptionalName<M>]?: ValueOf<M[K]> | undefined;
  }
>;
export type WireOfMembers<M extends Members> = Flat<
  { readonly [K in Exclude<keyof M, OptionalName<M> | GivenName<M>>]: WireOf<M[K]> } & {
    readonly [K in OptionalName<M>]?: WireOf<M[K]> | undefined;
  }
>;

export const misfit = (path: string, what: string): ServiceError =>
  new ServiceError('validation', `${path === '' ? 'the head' : path}: ${what}`);
const inside = (path: string, name: string | number): string => (path === '' ? String(name) : `${path}.${name}`);

const same = <T>(check: (wire: unknown, path: string) => T): Codec<T, T> => ({
  encode: (value) => value,
  decode: check,
});

export const flag = same((wire, path) => {
  if (typeof wire !== 'boolean') throw misfit(path, 'must be true or false');
  return wire;
});

export const integer = (least: number, most: number): Codec<number, number> =>
  same((wire, path) => {
    if (typeof wire !== 'number' || !Number.isInteger(wire) || wire < least || wire > most)
      throw misfit(path, `must be an integer from ${least} to ${most}`);
    return wire;
  });

export const oneOf = <const T extends string | boolean>(values: readonly T[]): Codec<T, T> =>
  same((wire, path) => {
    if (!values.includes(wire as T)) throw misfit(path, `must be one of ${values.join(', ')}`);
    return wire as T;
  });

const base64Pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export const text = (most: number, pattern: RegExp): Codec<string, string> =>
  same((wire, path) => {
    if (typeof wire !== 'string' || wire.length > most)
      throw misfit(path, `must be a text of at most ${most} characters`);
    if (!pattern.test(wire)) throw misfit(path, 'has other characters than permitted');
    return wire;
  });

/** A text of an answer: one of the words, or what a newer service says instead. */
export const word = <const T extends string>(values: readonly T[]): Codec<T, T> =>
  same((wire, path) => {
    if (typeof wire !== 'string' || wire.length > 64) throw misfit(path, `must be a word such as ${values[0]}`);
    return wire as T;
  });

/** Bytes that stay Base64 in the value too: only passed on and compared. */
export const base64Text = (most: number): Codec<string, string> => text(Math.ceil(most / 3) * 4, base64Pattern);

export const bytes = (most: number): Codec<Uint8Array, string> => {
  const wireForm = base64Text(most);
  return {
    encode: (value) => Buffer.from(value.buffer, value.byteOffset, value.length).toString('base64'),
    decode: (wire, path) => Buffer.from(wireForm.decode(wire, path), 'base64'),
  };
};

export const list = <V, W>(item: Codec<V, W>, most: number): Codec<readonly V[], readonly W[]> => ({
  encode: (values) => values.map((value) => item.encode(value)),
  decode: (wire, path) => {
    if (!Array.isArray(wire) || wire.length > most) throw misfit(path, `must be a list of at most ${most}`);
    return wire.map((each, at) => item.decode(each, inside(path, at)));
  },
});

export const nullable = <V, W>(codec: Codec<V, W>): Codec<V | null, W | null> => ({
  encode: (value) => (value === null ? null : codec.encode(value)),
  decode: (wire, path) => (wire === null ? null : codec.decode(wire, path)),
});

export const optional = <C extends AnyCodec>(codec: C): Optional<C> => ({ ...codec, [absent]: 'may be absent' });

export const always = <const V>(value: V): Given<V> => ({
  [given]: value,
  encode: () => {
    throw new TypeError('this member does not travel');
  },
  decode: () => value,
});

const isRecord = (wire: unknown): wire is Readonly<Record<string, unknown>> =>
  typeof wire === 'object' && wire !== null && !Array.isArray(wire);

const members = <const M extends Members>(declared: M, isOpen: boolean): Codec<ValueOfMembers<M>, WireOfMembers<M>> => {
  // Read once, not with every head.
  const all = Object.entries(declared).map(([name, codec]) => ({
    name,
    codec,
    isGiven: given in codec,
    isOptional: absent in codec,
  }));
  return {
    encode: (value) => {
      const wire: Record<string, unknown> = {};
      for (const { name, codec, isGiven } of all) {
        const member = (value as Readonly<Record<string, unknown>>)[name];
        if (member !== undefined && !isGiven) wire[name] = codec.encode(member);
      }
      return wire as WireOfMembers<M>;
    },
    decode: (wire, path) => {
      if (!isRecord(wire)) throw misfit(path, 'must be an object');
      const value: Record<string, unknown> = {};
      let known = 0;
      for (const { name, codec, isGiven, isOptional } of all)
        if (isGiven) {
          value[name] = codec.decode(undefined, path);
        } else if (Object.hasOwn(wire, name)) {
          known += 1;
          value[name] = codec.decode(wire[name], path === '' ? name : inside(path, name));
        } else if (!isOptional) {
          throw misfit(inside(path, name), 'is missing');
        }
      if (!isOpen && Object.keys(wire).length !== known) throw misfit(path, 'has an unknown member');
      return value as ValueOfMembers<M>;
    },
  };
};

/** Unknown members are refused: a misspelt one must not be silently without effect. */
export const object = <const M extends Members>(declared: M): Codec<ValueOfMembers<M>, WireOfMembers<M>> =>
  members(declared, false);

/**
 * An object of an answer. A newer service may say more than an older agent knows: unknown members
 * are ignored.
 */
export const answer = <const M extends Members>(declared: M): Codec<ValueOfMembers<M>, WireOfMembers<M>> =>
  members(declared, true);

type Cases = Readonly<Record<string, Members>>;
type CaseValue<T extends string, C extends Cases> = {
  [K in keyof C & string]: Flat<{ readonly [N in T]: K } & ValueOfMembers<C[K]>>;
}[keyof C & string];
type CaseWire<T extends string, C extends Cases> = {
  [K in keyof C & string]: Flat<{ readonly [N in T]: K } & WireOfMembers<C[K]>>;
}[keyof C & string];

/** Objects of several kinds: the member `tag` says which one, and which members it has. */
export const union = <const T extends string, const C extends Cases>(
  tag: T,
  cases: C,
): Codec<CaseValue<T, C>, CaseWire<T, C>> => {
  const kinds = new Map<unknown, AnyCodec>(
    Object.entries(cases).map(([name, members]) => [name, object({ [tag]: oneOf([name]), ...members })]),
  );
  const kindOf = (whole: unknown, path: string): AnyCodec => {
    const kind = isRecord(whole) ? kinds.get(whole[tag]) : undefined;
    if (kind === undefined) throw misfit(inside(path, tag), `must be one of ${[...kinds.keys()].join(', ')}`);
    return kind;
  };
  return {
    encode: (value) => kindOf(value, '').encode(value),
    decode: (wire, path) => kindOf(wire, path).decode(wire, path),
  };
};

/** The first if the member `tag` is there, else the second. */
export const either = <A, AW, B, BW>(
  tag: string,
  first: Codec<A, AW>,
  second: Codec<B, BW>,
): Codec<A | B, AW | BW> => ({
  encode: (value) => (tag in (value as object) ? first.encode(value as A) : second.encode(value as B)),
  decode: (wire, path) => (isRecord(wire) && Object.hasOwn(wire, tag) ? first : second).decode(wire, path),
});
