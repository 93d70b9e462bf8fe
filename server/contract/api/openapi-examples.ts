// One example of a request and of an answer for each operation, from the schemas of the
// description: every member, with a value that its schema allows. A member says by its own
// `example` what its type does not show.

/** A JSON Schema (2020-12), as the description has it. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly example?: unknown;
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
}

export type Schemas = Readonly<Record<string, JsonSchema>>;

const refPrefix = '#/components/schemas/';
export const nameOfRef = (ref: string): string => ref.slice(refPrefix.length);
export const refTo = (name: string): { readonly $ref: string } => ({ $ref: `${refPrefix}${name}` });

const texts: Readonly<Record<string, string>> = {
  'date-time': '2026-03-01T09:30:00.000Z',
  uri: 'https://keys.example.com/',
  password: 'a long passphrase',
};
/** Texts of common forms; the first that fits a pattern is its example. */
const candidates = ['text', 'example-1', '0a1b2c3d', '00'.repeat(32)];

const exampleText = ({ format, pattern, minLength = 0 }: JsonSchema): string => {
  if (format !== undefined && format in texts) return texts[format] ?? '';
  const form = pattern === undefined ? undefined : new RegExp(pattern, 'u');
  const found = candidates.find((text) => text.length >= minLength && (form === undefined || form.test(text)));
  if (found === undefined) throw new Error(`no example for the pattern ${pattern}: add one to the schema`);
  return found;
};

/** The example of a schema. Throws for a text whose form it does not know. */
export const exampleOf = (schema: JsonSchema, schemas: Schemas): unknown => {
  const of = (each: JsonSchema): unknown => exampleOf(each, schemas);
  if (schema.example !== undefined) return schema.example;
  if (schema.$ref !== undefined) return of(schemas[nameOfRef(schema.$ref)] ?? {});
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives?.[0] !== undefined) return of(alternatives[0]);
  if (schema.allOf !== undefined) return of(schema.allOf[0] ?? {});
  const [type] = [schema.type].flat();
  switch (type) {
    case 'object': {
      const members = Object.entries(schema.properties ?? {}).map(([name, member]) => [name, of(member)]);
      return Object.fromEntries(members);
    }
    case 'array':
      return schema.items === undefined ? [] : [of(schema.items)];
    case 'string':
      return exampleText(schema);
    case 'integer':
    case 'number':
      return schema.minimum ?? 1;
    case 'boolean':
      return false;
    default:
      return null;
  }
};
