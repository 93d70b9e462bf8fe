// The kinds of fields that the tables of dke.toml share, and how a parsed table becomes part of the
// configuration.

import { resolve } from 'node:path';
import { z } from 'zod';

/**
 * A path as the file has it. Its folder is added by `readTable`; the list of settings shows what
 * the file says.
 */
class GivenPath {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  toJSON(): string {
    return this.text;
  }
}

const toPath = (text: string): GivenPath => new GivenPath(text);
/**
 * Paths are printed in commands, lines of units and messages: a line break in one would end the
 * line.
 */
const pathText = z
  .string()
  .min(1)
  .regex(/^\P{Cc}*$/u, 'a path without control characters');
export const filePath = pathText.transform(toPath);
/** `names` are what else the field can say, for example `stderr`. */
export const filePathOr = (isName: (text: string) => boolean) =>
  pathText.transform((text) => (isName(text) ? text : toPath(text)));

export const hostName = z.string().regex(/^[A-Za-z0-9.:-]{1,253}$/, 'a host name or an address');
export const network = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], 'an address or a network like 10.0.0.0/8');
export const port = z.int().min(1).max(65_535);
export const httpsAddress = z.url({ protocol: /^https$/, error: 'an address that begins with https://' });
export const seconds = (most: number) => z.int().min(1).max(most);
export const shortName = z.string().regex(/^[a-z0-9-]{1,40}$/, 'lower-case letters, digits and hyphens');

/** A list of tables that each have a `name`. */
export const namedList = <T extends z.ZodType<{ readonly name: string }>>(table: T, most: number) =>
  z
    .array(table)
    .max(most)
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'names are given once each');

export const hourMs = 3_600_000;
export const mebibyte = 1_048_576;

type MemberName<S extends string> = S extends `${infer Head}_${infer Rest}`
  ? `${Head}${Capitalize<MemberName<Rest>>}`
  : S;
type Value<T> = T extends GivenPath ? string : T extends readonly (infer E)[] ? readonly Item<E>[] : T;
type Item<E> = E extends object ? Table<E> : E;
export type Table<T> = T extends unknown
  ? { readonly [K in keyof T as MemberName<K & string>]-?: Value<Exclude<T[K], undefined>> | Extract<T[K], undefined> }
  : never;

const isTable = (value: unknown): value is object => typeof value === 'object' && value !== null;

const readValue = (value: unknown, folder: string): unknown => {
  if (value instanceof GivenPath) return resolve(folder, value.text);
  if (!Array.isArray(value)) return value;
  return value.map((item: unknown) => (isTable(item) ? readTable(item, folder) : item));
};

/**
 * A table, or each table of a list, with its paths made absolute and its fields named as in
 * TypeScript: `keep_days` is `keepDays`. The names in a record, such as `oidc.roles`, are the
 * administrator's and stay as they are.
 */
export const readTable = <T extends object>(given: T, folder: string): Table<T> =>
  Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      readValue(value, folder),
    ]),
  ) as Table<T>;
