// The description of the API (OpenAPI 3.1) as its page shows it: operations by their tag, the
// members of a body or an answer, and one call of each operation that the service takes.

import type { ApiCall, Method } from '../api/client.ts';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}
interface Content {
  readonly schema: Schema;
  readonly example?: unknown;
}
interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}
export interface Described {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<
    Record<string, { readonly description?: string; readonly content?: Readonly<Record<string, Content>> }>
  >;
}
export interface ApiDocument {
  readonly info: { readonly version: string };
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}
export interface Operation extends Described {
  readonly method: Method;
  readonly path: string;
}

const json = 'application/json';
/** Stands for the id of a resource in the example of a call. */
const anyId = '01981d2c-7c1f-7b35-9a04-52a1be40c0de';

export const operationsOf = ({ paths }: ApiDocument): readonly Operation[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      ...described,
      method: method.toUpperCase() as Method,
      path,
    })),
  );

/** Whether every word occurs in what a person sees of the operation. */
export const isFound = ({ method, path, summary, operationId, description = '' }: Operation, find: string): boolean => {
  const text = `${method} ${path} ${summary} ${operationId} ${description}`.toLowerCase();
  return find
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
};

export interface ExampleCall extends ApiCall {
  /** What the call replaces says which state it replaces. */
  readonly ifMatch: string | undefined;
}

/** A call with what it must have, and the example of its body. */
export const exampleCall = ({ method, path, parameters = [], requestBody }: Operation): ExampleCall => {
  const required = (place: string): readonly Parameter[] =>
    parameters.filter((parameter) => parameter.in === place && parameter.required === true);
  const query = Object.fromEntries(required('query').map(({ name }) => [name, anyId]));
  const body = requestBody?.content[json]?.example;
  return {
    method,
    path: path.replaceAll(/\{\w+\}/g, anyId),
    query,
    body: typeof body === 'object' && body !== null ? body : undefined,
    ifMatch: required('header').some(({ name }) => name === 'If-Match') ? '"ETag"' : undefined,
  };
};

export const bodyOf = ({ requestBody }: Operation): Content | undefined => requestBody?.content[json];

/** What success answers: its status, in words, and the content if it is JSON. */
export const answerOf = ({
  responses,
}: Operation): { readonly status: string; readonly text: string; readonly content: Content | undefined } => {
  const [status = '', answer] = Object.entries(responses).find(([each]) => each < '400') ?? [];
  const types = Object.keys(answer?.content ?? {}).filter((type) => type !== json);
  const text = [answer?.description, ...types].filter((each) => each !== undefined).join(', ');
  return { status, text, content: answer?.content?.[json] };
};

export const nameOfRef = (ref: string): string => ref.split('/').at(-1) ?? '';

/**
 * The type of a value in a few words: "string, date-time", "list of Key", "enabled or disabled".
 */
export const typeOf = (schema: Schema): string => {
  if (schema.$ref !== undefined) return nameOfRef(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map(String).join(' or ');
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives !== undefined) return alternatives.map(typeOf).join(' or ');
  const types = [schema.type ?? 'any value'].flat();
  if (types.includes('array')) return `list of ${schema.items === undefined ? 'values' : typeOf(schema.items)}`;
  return `${types.join(' or ')}${schema.format === undefined ? '' : `, ${schema.format}`}`;
};

export interface Member {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly description: string | undefined;
}

/** The members of an object, also of one that has a name. */
export const membersOf = (schema: Schema | undefined, { components }: ApiDocument): readonly Member[] => {
  const own = schema?.$ref === undefined ? schema : components.schemas[nameOfRef(schema.$ref)];
  return Object.entries(own?.properties ?? {}).map(([name, member]) => ({
    name,
    type: typeOf(member),
    required: own?.required?.includes(name) ?? false,
    description: member.description,
  }));
};
