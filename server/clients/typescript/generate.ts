// Writes clients/typescript/gen/types.ts and clients/typescript/gen/operations.ts from the OpenAPI
// document: the types of the schemas, and an entry for each operation. Run it with `npm run
// generate`; a test compares. Not part of the package.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeApi } from '../../contract/api/openapi.ts';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}
type Content = Readonly<Record<string, { readonly schema: Schema }>>;
interface Described {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
  readonly 'x-long'?: true;
  readonly 'x-shows-once'?: readonly string[];
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const json = 'application/json';
const head = '// Generated from the OpenAPI document (npm run generate). Do not edit.\n';
const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
const nameOf = (ref: string): string => ref.split('/').at(-1) ?? '';
const member = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name));
const comment = (text: string | undefined, indent: string): string =>
  text === undefined ? '' : `${indent}/** ${text.replaceAll('*/', '* /').replaceAll(/\s*\n\s*/g, ' ')} */\n`;

const listOf = (item: string): string =>
  `readonly ${/[|&]/.test(item) && !item.startsWith('{') ? `(${item})` : item}[]`;

/** The TypeScript type of a schema. `types` comes before the names of other schemas. */
const typeOf = (schema: Schema, types: string, indent = ''): string => {
  const { $ref, anyOf, oneOf, allOf, type, items, properties, additionalProperties } = schema;
  if ($ref !== undefined) return `${types}${nameOf($ref)}`;
  if (schema.enum !== undefined)
    return schema.enum.map((each) => (typeof each === 'string' ? quote(each) : `${each}`)).join(' | ');
  const either = anyOf ?? oneOf;
  if (either !== undefined) return either.map((each) => typeOf(each, types, indent)).join(' | ');
  // A part of allOf without a type only describes.
  if (allOf !== undefined)
    return allOf
      .map((each) => typeOf(each, types, indent))
      .filter((each) => each !== 'unknown')
      .join(' & ');
  if (Array.isArray(type)) return type.map((each) => typeOf({ ...schema, type: each }, types, indent)).join(' | ');
  switch (type) {
    case 'array':
      return `${listOf(typeOf(items ?? {}, types, indent))}`;
    case 'integer':
      return 'number';
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return type;
    case 'object':
      return properties === undefined
        ? `{ readonly [name: string]: ${typeof additionalProperties === 'object' ? typeOf(additionalProperties, types, indent) : 'unknown'} }`
        : membersOf(schema, types, indent);
    default:
      return 'unknown';
  }
};

/** On one line if it is short and no member has a comment. */
const membersOf = ({ properties = {}, required = [] }: Schema, types: string, indent: string): string => {
  const inner = `${indent}  `;
  const all = Object.entries(properties);
  const members = all.map(([name, schema]) => {
    const type = typeOf(schema, types, inner);
    return `readonly ${member(name)}${required.includes(name) ? '' : '?'}: ${type}${required.includes(name) ? '' : ' | undefined'}`;
  });
  if (members.length === 0) return '{}';
  const line = `{ ${members.join('; ')} }`;
  if (line.length <= 100 && !line.includes('\n') && all.every(([, { description }]) => description === undefined))
    return line;
  const lines = members.map((each, index) => `${comment(all[index]?.[1].description, inner)}${inner}${each};\n`);
  return `{\n${lines.join('')}${indent}}`;
};

/** What a schema that only refers to another one says. */
const resolved = (schemas: Document['components']['schemas'], schema: Schema): Schema =>
  schema.$ref === undefined ? schema : resolved(schemas, schemas[nameOf(schema.$ref)] ?? {});

const pendingMembers = 'PendingMembers';
const pending = ['pendingNodes', 'pendingUntil'];

/** Without the members that every answer to a change can have: PendingMembers declares them. */
const answerOf = ({ properties = {}, ...schema }: Schema, types: string, indent = ''): string => {
  const own = Object.fromEntries(Object.entries(properties).filter(([name]) => !pending.includes(name)));
  const isChange = pending.every((name) => name in properties);
  return `${typeOf({ ...schema, properties: own }, types, indent)}${isChange ? ` & ${types}${pendingMembers}` : ''}`;
};

const typesFile = ({ components: { schemas } }: Document): string => {
  const members = Object.values(schemas).flatMap(({ properties = {} }) =>
    Object.entries(properties).filter(([name]) => pending.includes(name)),
  );
  const declare = (name: string, type: string, text?: string): string =>
    `${comment(text, '')}export type ${name} = ${type};\n`;
  return [
    head,
    ...Object.entries(schemas).map(([name, schema]) => {
      const base = name.replace(/AfterChange$/, '');
      const type = base !== name && base in schemas ? `${base} & ${pendingMembers}` : answerOf(schema, '');
      return declare(name, type, schema.description);
    }),
    declare(
      pendingMembers,
      typeOf({ type: 'object', properties: Object.fromEntries(members) }, ''),
      'What every answer to a change can have.',
    ),
    declare('ProblemCode', typeOf(schemas.Problem?.properties?.code ?? {}, ''), 'Stable codes of failures.'),
  ].join('\n');
};

interface Entry {
  readonly group: string;
  readonly row: string;
}

const paging = ['after', 'limit'];

const entryOf = (
  schemas: Document['components']['schemas'],
  path: string,
  method: string,
  operation: Described,
): Entry => {
  const [group = '', name = ''] = operation.operationId.split('.');
  const { parameters = [], requestBody } = operation;
  const inPath = parameters.filter((parameter) => parameter.in === 'path');
  const inQuery = parameters.filter((parameter) => parameter.in === 'query');
  const hasHeader = (header: string): boolean =>
    parameters.some((each) => each.in === 'header' && each.name === header);
  const requires = (header: string): boolean =>
    parameters.some((each) => each.in === 'header' && each.name === header && each.required === true);
  const [takes, sent] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const [, answer] = Object.entries(operation.responses).find(([status]) => ['200', '201'].includes(status)) ?? [];
  const content = answer?.content ?? {};
  const answered = content[json]?.schema;
  const streams = answered === undefined ? Object.keys(content) : [];

  const showsOnce = operation['x-shows-once'] ?? [];

  const indent = '    ';
  const grouped = (all: typeof parameters): Schema => ({
    type: 'object',
    properties: Object.fromEntries(
      all.map(({ name, schema, description }) => [
        name,
        description === undefined ? schema : { ...schema, description },
      ]),
    ),
    required: all.filter(({ required }) => required === true).map(({ name }) => name),
  });
  const isFile = takes !== undefined && takes !== json;
  const bodyType = isFile ? 'FileBody | Uint8Array' : typeOf(sent?.schema ?? {}, 't.', indent);
  const asked = inQuery.filter((parameter) => parameter.name !== 'tenant');
  const isPaged =
    inQuery.some((parameter) => parameter.name === 'after') &&
    resolved(schemas, answered ?? {}).properties?.next !== undefined;
  const own = isPaged ? asked.filter((parameter) => !paging.includes(parameter.name)) : asked;
  const queries = [
    ...(own.length === 0 ? [] : [membersOf(grouped(own), 't.', indent)]),
    ...(isPaged ? ['Paging'] : []),
    ...(asked.length === inQuery.length ? [] : ['InTenant']),
  ];
  const parts = [
    ...(inPath.length === 0 ? [] : [`path: { ${inPath.map((each) => `${member(each.name)}: string`).join('; ')} }`]),
    ...(queries.length === 0 ? [] : [`query?: ${queries.join(' & ')}`]),
    ...(sent === undefined ? [] : [`body${requestBody?.required === true ? '' : '?'}: ${bodyType}`]),
  ];
  const input = parts.length === 0 ? '{}' : `{ ${parts.join('; ')} }`;
  const output =
    answered === undefined ? (streams.length > 0 ? 'FileAnswer' : 'undefined') : answerOf(answered, 't.', indent);

  /** Names, with the values that are listed. */
  const words = (all: readonly (readonly [string, Schema])[]): string =>
    `{ ${all
      .map(([word, schema]) => {
        const { type, enum: values } = resolved(schemas, schema);
        return `${member(word)}: ${type === 'string' && values !== undefined ? `[${values.map((each) => quote(String(each))).join(', ')}]` : 'null'}`;
      })
      .join(', ')} }`;
  const members = isFile || sent === undefined ? [] : Object.entries(resolved(schemas, sent.schema).properties ?? {});
  const value = [
    `method: ${quote(method)}`,
    `path: ${quote(path)}`,
    ...(asked.length === 0 ? [] : [`query: ${words(asked.map((each) => [each.name, each.schema] as const))}`]),
    ...(sent === undefined || isFile ? [] : [`body: ${words(members)}`]),
    ...(asked.length === inQuery.length ? [] : ['inTenant: true']),
    ...(hasHeader('Idempotency-Key') ? ['creates: true'] : []),
    ...(hasHeader('If-Match') ? ['changes: true'] : []),
    ...(operation['x-long'] === true ? ['long: true'] : []),
    ...(showsOnce.length === 0 ? [] : [`showsOnce: [${showsOnce.map(quote).join(', ')}]`]),
    ...(isFile ? [`takes: ${quote(takes)}`] : []),
    ...(streams.length === 0 ? [] : [`streams: [${streams.map(quote).join(', ')}]`]),
  ];
  const kind = isPaged ? 'pagedOperation' : requires('If-Match') ? 'replacingOperation' : 'operation';
  const declares = `${indent}${name}: ${kind}<${input}, ${output}>`;
  const line = `${declares}({ ${value.join(', ')} }),\n`;
  const lines = `${declares}({\n${indent}  ${value.join(', ')},\n${indent}}),\n`;
  return { group, row: `${comment(operation.summary, indent)}${line.length > 121 ? lines : line}` };
};

const operationsFile = ({ components: { schemas }, paths }: Document): string => {
  const entries = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => entryOf(schemas, path, method, operation)),
  );
  const groups = [...Map.groupBy(entries, ({ group }) => group)].map(
    ([group, all]) => `  ${group}: {\n${all.map(({ row }) => row).join('')}  },\n`,
  );
  return [
    head,
    "import { type FileAnswer, type FileBody, type InTenant, type Operation, operation, type Paging, pagedOperation, replacingOperation } from '../operation.ts';",
    "import type * as t from './types.ts';\n",
    `export const operations = {\n${groups.join('')}} satisfies Readonly<Record<string, Readonly<Record<string, Operation>>>>;\n`,
    'export type Operations = typeof operations;\n',
  ].join('\n');
};

/** Every generated file by its path from the root of the project. */
export const generateClient = (): ReadonlyMap<string, string> => {
  const document = describeApi('') as unknown as Document;
  return new Map([
    ['server/clients/typescript/gen/types.ts', typesFile(document)],
    ['server/clients/typescript/gen/operations.ts', operationsFile(document)],
  ]);
};

if (import.meta.main) {
  const root = join(import.meta.dirname, '../../..');
  for (const [path, text] of generateClient()) writeFileSync(join(root, path), text);
}
