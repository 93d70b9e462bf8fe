// What the client knows of an operation of the API: one entry of
// clients/typescript/gen/operations.ts. The types of what is sent and answered are in the type of
// the entry only; nothing of them is there when a program runs.

export interface Input {
  readonly path?: Readonly<Record<string, string>> | undefined;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  readonly body?: unknown;
}

export type InTenant = {
  /**
   * Id or name of the tenant to act in. By default that of the client, then your own, or the
   * default tenant.
   */
  readonly tenant?: string | undefined;
};

export type Paging = {
  /** The `next` of the previous page. */
  readonly after?: string | undefined;
  /**
   * The maximum number of items. A page of large items is shorter: continue while `next` is not
   * null.
   */
  readonly limit?: number | undefined;
};

/**
 * Members of a query or a body, with the values that the document lists for them; null when it
 * lists none.
 */
type Words = Readonly<Record<string, readonly string[] | null>>;

export interface Operation<I extends Input = Input, O = unknown> {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** Parameters in braces. */
  readonly path: string;
  readonly query?: Words;
  readonly body?: Words;
  /** Acts in the tenant that the query parameter `tenant` names. */
  readonly inTenant?: true;
  /** Replaces what was read: If-Match is required. */
  readonly replaces?: true;
  /** Creates something: takes an Idempotency-Key. */
  readonly creates?: true;
  /** Takes If-Match. */
  readonly changes?: true;
  /** Answers one page of a list. */
  readonly paged?: true;
  /** Answers when everything is checked or written, which may take long. */
  readonly long?: true;
  /**
   * Members of the answer (`config.pkcs11_toml`) that are secret and shown this once: texts, or
   * lists of texts, never empty.
   */
  readonly showsOnce?: readonly string[];
  /** The body is a file of this media type. */
  readonly takes?: string;
  /** The answer is a file of one of these media types. */
  readonly streams?: readonly string[];
  /** Never set: only for the types. */
  readonly types?: { readonly input: I; readonly answer: O };
}

type Row = Omit<Operation, 'paged' | 'replaces' | 'types'>;
/** An entry of clients/typescript/gen/operations.ts. */
export const operation = <I extends Input, O>(row: Row): Operation<I, O> => row;
export const pagedOperation = <I extends Input, O>(row: Row): Operation<I, O> & { readonly paged: true } => ({
  ...row,
  paged: true,
});

export const replacingOperation = <I extends Input, O>(row: Row): Operation<I, O> & { readonly replaces: true } => ({
  ...row,
  replaces: true,
});

export type InputOf<O extends Operation> = NonNullable<O['types']>['input'];
export type AnswerOf<O extends Operation> = NonNullable<O['types']>['answer'];

export type BodyOf<O extends Operation> = InputOf<O> extends { readonly body?: infer B } ? B : never;

/** A file to send. Without `size`, its length is not announced. */
export interface FileBody {
  readonly from: AsyncIterable<Uint8Array>;
  readonly size?: number;
}
/** A file that is read while it comes. */
export type FileAnswer = AsyncIterable<Uint8Array>;
