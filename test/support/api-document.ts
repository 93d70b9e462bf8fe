// Compares answers of the API with its published description (OpenAPI): the status, the media type
// and every member.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

interface Content {
  readonly schema: object;
  readonly example?: unknown;
}
export interface DescribedAnswer {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, object>>;
  readonly content?: Readonly<Record<string, Content>>;
}
export interface DescribedOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security: readonly object[];
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly required?: boolean }[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, DescribedAnswer>>;
}
export interface ApiDocument {
  readonly openapi: string;
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly responses: Readonly<Record<string, DescribedAnswer>>;
  };
}

export const json = 'application/json';
const problemType = 'application/problem+json';

/**
 * The answer of a status, whether it is described with the operation or shared; undefined when
 * neither.
 */
export const answerOf = (document: ApiDocument, operation: DescribedOperation, status: string) => {
  const answer = operation.responses[status];
  const name = answer?.$ref?.split('/').at(-1);
  return name === undefined ? answer : document.components.responses[name];
};

/** Checks values with the schemas of a document; returns the faults. */
export const validatorOf = (document: ApiDocument) => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true, unicodeRegExp: true });
  // The types of this package are those of a CommonJS module.
  (formats as unknown as (to: Ajv2020) => void)(ajv);
  ajv.addSchema({ $id: 'document', components: document.components });
  const compiled = new Map<object, ValidateFunction>();
  const absolute = (schema: object): object =>
    JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/')) as object;
  return (schema: object, value: unknown): string | undefined => {
    let validate = compiled.get(schema);
    if (validate === undefined) {
      validate = ajv.compile(absolute(schema));
      compiled.set(schema, validate);
    }
    return validate(value) ? undefined : ajv.errorsText(validate.errors);
  };
};

export const readDocument = (): ApiDocument =>
  JSON.parse(
    readFileSync(join(resolve(import.meta.dirname, '../..'), 'dist/server/contract/api/openapi.json'), 'utf8'),
  ) as ApiDocument;

interface Answered {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly contentType: string | undefined;
  readonly text: string;
}

const createCheck = () => {
  const document = readDocument();
  const validate = validatorOf(document);
  const templates = Object.entries(document.paths).map(([path, operations]) => ({
    form: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`),
    // `/a/b` before `/a/{id}`.
    parameters: path.split('{').length,
    operations,
  }));
  templates.sort((one, other) => one.parameters - other.parameters);
  return ({ method, path, status, contentType, text }: Answered): string | undefined => {
    const { pathname } = new URL(path, 'https://dke.example');
    const found = templates.filter(({ form }) => form.test(pathname));
    const operation = found
      .map(({ operations }) => operations[method.toLowerCase()])
      .find((each) => each !== undefined);
    // A path or method that does not exist, and the description itself.
    if (operation === undefined) return undefined;
    const name = `${method} ${pathname}`;
    const answer = answerOf(document, operation, String(status));
    if (answer === undefined) return `${name}: the description has no status ${status}`;
    const type = contentType?.split(';')[0];
    const content = answer.content?.[type ?? ''];
    if (content === undefined)
      return text === '' ? undefined : `${name}: the description of ${status} has no ${contentType}`;
    if (type !== json && type !== problemType) return undefined;
    const fault = validate(content.schema, JSON.parse(text));
    return fault === undefined ? undefined : `${name}: the answer with ${status} is not as described: ${fault}`;
  };
};

let check: ReturnType<typeof createCheck> | undefined;

/**
 * Throws when an answer is not as the description of the built service says. In tests only: a
 * benchmark also asks other checkouts.
 */
export const requireDescribed = (answered: Answered): void => {
  if (process.env.VITEST === undefined) return;
  check ??= createCheck();
  const fault = check(answered);
  if (fault !== undefined) throw new Error(fault);
};
