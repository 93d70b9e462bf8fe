// The templates that a release may give for its master key and for the object of its metadata: no
// public trace shows one, so every combination is played. A combination is a value for each
// dimension; `unnamed` leaves the attribute out.
import { type AttributeName, CKA } from '../../provider/schema/attributes.ts';
import { CKK, CKO } from '../../provider/schema/constants.ts';

type Flag = 'unnamed' | 'true' | 'false';
const flag = ['unnamed', 'true', 'false'] as const;
const orders = ['usual', 'reversed', 'label-last'] as const;

/** Dimensions of a template, with their values. */
export type Dimensions = Readonly<Record<string, readonly string[]>>;
export type Combination = Readonly<Record<string, string>>;

export const keyDimensions = {
  ENCRYPT: flag,
  DECRYPT: flag,
  WRAP: flag,
  UNWRAP: flag,
  MODIFIABLE: flag,
  EXTRACTABLE: flag,
  TOKEN: flag,
  PRIVATE: flag,
  ID: ['unnamed', 'named'],
  /** SIGN, VERIFY and DERIVE. */
  others: flag,
  SENSITIVE: ['true', 'unnamed'],
  /** CLASS and KEY_TYPE. */
  type: ['named', 'unnamed'],
  order: orders,
} as const satisfies Dimensions;

/**
 * The key's dimensions without the values that a rule refuses: each of these templates creates a
 * key that works.
 */
export const usableDimensions = {
  ...keyDimensions,
  ENCRYPT: ['unnamed', 'true'],
  DECRYPT: ['unnamed', 'true'],
  EXTRACTABLE: ['unnamed', 'false'],
  TOKEN: ['unnamed', 'true'],
  PRIVATE: ['unnamed', 'true'],
} as const satisfies Dimensions;

export const metadataDimensions = {
  TOKEN: flag,
  PRIVATE: flag,
  MODIFIABLE: flag,
  DESTROYABLE: flag,
  ID: ['unnamed', 'named'],
  APPLICATION: ['unnamed', 'named'],
  OBJECT_ID: ['unnamed', 'named'],
  order: orders,
} as const satisfies Dimensions;

interface Slot {
  readonly attribute: AttributeName;
  /**
   * The value in the driver's notation: `b` a flag, `u` a number, `l` the label, `v` the value, `x`
   * a number of bytes.
   */
  readonly as: `${'b' | 'u' | 'l' | 'v' | 'x'}:${number}`;
}
const named = (attribute: AttributeName, value: string | undefined): readonly Slot[] =>
  value === undefined || value === 'unnamed' ? [] : [{ attribute, as: value === 'true' ? 'b:1' : 'b:0' }];
const bytes = (attribute: AttributeName, value: string | undefined): readonly Slot[] =>
  value === 'named' ? [{ attribute, as: 'x:16' }] : [];

const ordered = (slots: readonly Slot[], order: string | undefined): readonly Slot[] => {
  if (order === 'reversed') return slots.toReversed();
  if (order === 'label-last') return slots.toSorted((a, b) => +(a.attribute === 'LABEL') - +(b.attribute === 'LABEL'));
  return slots;
};
/** The items of the driver's step `template`. */
const items = (slots: readonly Slot[]): string =>
  slots.map(({ attribute, as }) => `${CKA[attribute].toString(16)}:${as}`).join(',');

export const keyTemplate = (of: Combination): string =>
  items(
    ordered(
      [
        ...(of.type === 'named'
          ? ([
              { attribute: 'CLASS', as: `u:${CKO.SECRET_KEY}` },
              { attribute: 'KEY_TYPE', as: `u:${CKK.AES}` },
            ] as const)
          : []),
        { attribute: 'LABEL', as: 'l:0' },
        { attribute: 'VALUE_LEN', as: 'u:32' },
        ...bytes('ID', of.ID),
        ...(['TOKEN', 'PRIVATE', 'SENSITIVE', 'EXTRACTABLE'] as const).flatMap((name) => named(name, of[name])),
        ...(['ENCRYPT', 'DECRYPT', 'WRAP', 'UNWRAP', 'MODIFIABLE'] as const).flatMap((name) => named(name, of[name])),
        ...(['SIGN', 'VERIFY', 'DERIVE'] as const).flatMap((name) => named(name, of.others)),
      ],
      of.order,
    ),
  );

export const metadataTemplate = (of: Combination): string =>
  items(
    ordered(
      [
        { attribute: 'CLASS', as: `u:${CKO.DATA}` },
        ...(['TOKEN', 'PRIVATE', 'MODIFIABLE', 'DESTROYABLE'] as const).flatMap((name) => named(name, of[name])),
        { attribute: 'LABEL', as: 'l:0' },
        ...(['ID', 'APPLICATION', 'OBJECT_ID'] as const).flatMap((name) => bytes(name, of[name])),
        { attribute: 'VALUE', as: 'v:0' },
      ],
      of.order,
    ),
  );

/** What SET KEY of a release in use has, as far as it is known. */
export const usualKey: Combination = {
  ...Object.fromEntries(Object.entries(keyDimensions).map(([name, values]) => [name, values[0]])),
  TOKEN: 'true',
  PRIVATE: 'true',
  EXTRACTABLE: 'false',
  MODIFIABLE: 'false',
};
export const usualMetadata: Combination = {
  ...Object.fromEntries(Object.entries(metadataDimensions).map(([name, values]) => [name, values[0]])),
  TOKEN: 'true',
};

/** Templates that lost data, or were close to it: each stays in the short tier. */
export const dangerous: readonly Combination[] = [
  { ...usualKey, WRAP: 'true', UNWRAP: 'true' },
  { ...usualKey, WRAP: 'true' },
  { ...usualKey, UNWRAP: 'true' },
  { ...usualKey, ENCRYPT: 'true', WRAP: 'true', UNWRAP: 'true' },
  { ...usualKey, ENCRYPT: 'true', DECRYPT: 'false' },
  { ...usualKey, DECRYPT: 'false', MODIFIABLE: 'true' },
  { ...usualKey, DECRYPT: 'true', WRAP: 'true', UNWRAP: 'true' },
  { ...usualKey, TOKEN: 'unnamed' },
  { ...usualKey, TOKEN: 'false' },
];

const at = (dimensions: Dimensions, index: number): Combination => {
  let rest = index;
  return Object.fromEntries(
    Object.entries(dimensions).map(([name, values]) => {
      const value = values[rest % values.length] ?? '';
      rest = Math.floor(rest / values.length);
      return [name, value];
    }),
  );
};

/** Every combination of the dimensions. */
export function* everyCombination(dimensions: Dimensions): Generator<Combination> {
  const count = Object.values(dimensions).reduce((product, values) => product * values.length, 1);
  for (let index = 0; index < count; index += 1) yield at(dimensions, index);
}

/**
 * Combinations in which any two values of two dimensions meet at least once: each covers as many
 * open pairs as a search finds.
 */
export const pairwise = (dimensions: Dimensions): readonly Combination[] => {
  const names = Object.keys(dimensions);
  const pairs = (of: Combination): readonly string[] =>
    names.flatMap((a, i) => names.slice(i + 1).map((b) => `${a}=${of[a]} ${b}=${of[b]}`));
  const open = new Set(
    names.flatMap((a, i) =>
      names
        .slice(i + 1)
        .flatMap((b) => (dimensions[a] ?? []).flatMap((x) => (dimensions[b] ?? []).map((y) => `${a}=${x} ${b}=${y}`))),
    ),
  );
  const chosen: Combination[] = [];
  while (open.size > 0) {
    // Begins with an open pair; each further dimension takes the value that closes most pairs with
    // what is there.
    const [first = ''] = open;
    const made: Record<string, string> = Object.fromEntries(first.split(' ').map((each) => each.split('=', 2)));
    for (const name of names) {
      if (made[name] !== undefined) continue;
      const scored = (dimensions[name] ?? []).map((value) => {
        const gain = Object.entries(made).filter(
          ([other, its]) =>
            open.has(`${name}=${value} ${other}=${its}`) || open.has(`${other}=${its} ${name}=${value}`),
        ).length;
        return [gain, value] as const;
      });
      made[name] = scored.toSorted(([a], [b]) => b - a)[0]?.[1] ?? '';
    }
    chosen.push(made);
    for (const pair of pairs(made)) open.delete(pair);
  }
  return chosen;
};

const flagOf = (of: Combination, name: string): Flag => of[name] as Flag;
/**
 * What a template must come to. `works`: a database would be surprised by a refusal. `refused`:
 * there is no key that works with it. `either`: nothing is lost, whichever it is.
 */
export const mustBe = (of: Combination): 'works' | 'refused' | 'either' => {
  if (flagOf(of, 'DECRYPT') === 'false' || flagOf(of, 'TOKEN') === 'false') return 'refused';
  if (flagOf(of, 'ENCRYPT') === 'false') return 'either';
  return flagOf(of, 'EXTRACTABLE') === 'true' || flagOf(of, 'PRIVATE') === 'false' ? 'either' : 'works';
};
