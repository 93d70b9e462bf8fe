// What a route of the console's API is: one row. The server binds a handler to every row, OpenAPI
// is generated from the rows, the pages and the command take their types from them. Rows say
// nothing of how an answer comes about.

import { z } from '@hono/zod-openapi';

import { serviceErrorCodes } from '../../base/service-error.ts';
import type { Permission, Scope } from '../../domain/access.ts';
import type { SignInStep } from '../../domain/sign-in.ts';

export interface RouteRow {
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** Parameters in braces; each is a segment of text, compared byte for byte. */
  readonly path: `/api/${string}`;
  readonly summary: string;
  readonly description?: string;
  /**
   * 'sign-in': open to everybody; the request has a credential of its own. Every other route wants
   * a token or a session; 'signed-in': any will do.
   */
  readonly needs: Permission | 'signed-in' | 'sign-in';
  /**
   * Taken also by sessions that lack these: what finishes a sign-in, and what tells that it is not
   * finished.
   */
  readonly unfinished?: readonly SignInStep[];
  /**
   * Tries a credential: counted for the address before anything of the request is read. Every
   * change that is open to everybody does. 'poll': of a command that waits for its person, counted
   * apart, so that waiting takes no sign-in from the others of its address.
   */
  readonly attempt?: true | 'poll';
  /**
   * String members of the body that are passwords: they reach the handler as bytes, and nothing as
   * text.
   */
  readonly secrets?: readonly string[];
  /** Starts, replaces or ends the session of the browser. */
  readonly setsSession?: true;
  /** The parameter that names a resource for which roles are given. */
  readonly scope?: { readonly kind: Scope['kind']; readonly parameter: string };
  /**
   * Whose it is. Absent: the tenant's acted in. 'platform': the platform's, so that a role within
   * one tenant does not give it. 'both': the tenant's acted in; those who have the right for the
   * whole platform and name no tenant get everything. 'itself': the tenant that `{id}` names.
   */
  readonly tenancy?: 'platform' | 'both' | 'itself';
  readonly query?: z.ZodObject;
  readonly body?: z.ZodObject;
  /** The body is a file of this media type, of any length, read while it comes. */
  readonly takes?: 'application/octet-stream';
  /** Null: no content, or what `streams` says. */
  readonly answer: z.ZodType | null;
  /**
   * Answers when everything is checked or written, which may take long: clients wait longer for it.
   * The answer of one that reads is not given when the caller's credential has ended in the
   * meantime (credential-end.ts).
   */
  readonly long?: 'reads' | 'changes';
  /** The answer is a file of one of these media types, sent while it is read. */
  readonly streams?: readonly string[];
  /**
   * Changes nothing, although its method is not GET, because what it reads by is too large for an
   * address. A page may ask it on its own, and the session then counts as unused.
   */
  readonly reads?: true;
  /** Makes something: answers 201 and takes `Idempotency-Key`. */
  readonly creates?: true;
  /**
   * Members of the answer (`config.pkcs11_toml`) that are secret and shown this once: a repeat
   * under the same `Idempotency-Key` does not show them again. Each is a text, or a list of texts,
   * and never empty; clients take no other answer for one.
   */
  readonly showsSecret?: readonly string[];
  /**
   * Under dual control it is not done but waits: the answer is 202, with the approval request and
   * its `Location`.
   */
  readonly mayWait?: true;
  /** The row works also in a tenant that is deleted, where nothing else is changed. */
  readonly whenDeleted?: true;
  /**
   * Its answer names copies of a key in other tenants, to those who have the permission for the
   * whole platform.
   */
  readonly namesCopies?: true;
  /**
   * The row of the same group whose answer `If-Match` is compared with; that row's answers have the
   * `ETag`.
   */
  readonly changes?: string;
}

/**
 * Whether a call of the row replaces what was read: it must say which state it replaces (If-Match),
 * or the change of another person in between would be undone without a word.
 */
export const replaces = (row: RouteRow): boolean => row.method === 'put' && row.changes !== undefined;

/** Whether a call of the row changes nothing: by its row, or by its query where the row has one. */
export const readsOnly = ({ method, reads, query }: RouteRow, asked: Pick<URLSearchParams, 'get'>): boolean =>
  method === 'get' || reads === true || (query?.shape.dryRun !== undefined && asked.get('dryRun') === 'true');

/**
 * The query parameter of every route that names the tenant to act in, by its id or name. Absent:
 * the caller's own, or the default one.
 */
export const tenantParameter = 'tenant';

export type RouteGroup = { readonly [name: string]: RouteRow };

/** The names in braces. */
export type PathParameters<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [K in Name]: string } & PathParameters<Rest>
  : unknown;

type Parsed<S> = S extends z.ZodType ? z.output<S> : Record<never, never>;

/** What a handler is given. */
export interface RouteInput<R extends RouteRow> {
  readonly path: PathParameters<R['path']>;
  readonly query: Parsed<R['query']>;
  readonly body: Parsed<R['body']>;
  /** The body of a row that takes a file; undefined for other rows. */
  readonly file: R['takes'] extends string ? AsyncIterable<Uint8Array> : undefined;
}

/** What a client gets. */
export type AnswerOf<R extends RouteRow> = R['answer'] extends z.ZodType ? z.output<R['answer']> : undefined;

/**
 * What the answer of every change may have besides its own members; the headers say the same
 * (contract/pending-nodes.ts).
 */
export const pendingMembers = {
  pendingNodes: z
    .array(z.string())
    .readonly()
    .optional()
    .openapi({
      description:
        'Nodes that did not confirm this change within two seconds and may still use the earlier state. ' +
        'Absent when there are none.',
    }),
  pendingUntil: z.iso.datetime().nullable().optional().openapi({
    description:
      'When the last of the nodes in `pendingNodes` stops using keys if it has not confirmed the change. Null: no limit.',
  }),
};

// --- words that every resource uses --------------------------------------------------------------

export const identifier = z.string().openapi({ example: '01981d2c-7c1f-7b35-9a04-52a1be40c0de' });
/** RFC 3339, UTC, milliseconds. */
export const moment = z.iso.datetime().openapi({ example: '2026-03-01T09:30:00.000Z' });
/** For people: 1 to 128 characters, no control characters, no blank at either end. */
export const displayName = z
  .string()
  .min(1, 'must not be empty')
  .max(128, 'must be at most 128 characters')
  .regex(
    /^(?!\s)[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]*(?<!\s)$/u,
    'must have no control characters, and no spaces at the beginning or end',
  );
/** Body of what gives something another name. */
export const newName = z.strictObject({ name: displayName }).openapi('NewName');
export const integrity = z
  .enum(['ok', 'tampered'])
  .openapi({ description: 'tampered: the stored row was changed from outside; every use is refused' });

export const pageQuery = z.strictObject({
  after: z.string().min(1).max(200).optional().openapi({ description: 'The `next` of the previous page.' }),
  limit: z
    .string()
    .regex(/^[1-9][0-9]{0,3}$/, 'must be a whole number from 1 to 1000')
    .transform(Number)
    .refine((limit) => limit <= 1000, 'must be at most 1000')
    .optional()
    .openapi({
      type: 'integer',
      minimum: 1,
      maximum: 1000,
      default: 100,
      description: 'The maximum number of items. A page of large items is shorter: continue while `next` is not null.',
    }),
});

/** A query parameter that is true or false. */
export const queryFlag = (about: { readonly description?: string; readonly default?: boolean } = {}) =>
  z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .openapi({ type: 'boolean', ...about });

/** A moment with any offset. */
export const filterMoment = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** Query parameters of lists that people read by time. */
export const timeSpan = {
  from: filterMoment.optional().openapi({ type: 'string', format: 'date-time', description: 'Inclusive.' }),
  to: filterMoment.optional().openapi({ type: 'string', format: 'date-time', description: 'Exclusive.' }),
};

/** A list as a file, sent while it is read. */
export const exportFormat = {
  format: z.enum(['ndjson', 'csv']).optional().openapi({ default: 'ndjson' }),
};
export const exportTypes = ['application/x-ndjson', 'text/csv'];
export const exporting =
  'Newest first, one record on each line, streamed. Audited. In CSV, text that a spreadsheet would treat as a formula ' +
  "is prefixed with '.";

/** One page of a list; `next` is null on the last one. */
export const pageOf = <S extends z.ZodType>(item: S) =>
  z.strictObject({ items: z.array(item).readonly(), next: z.string().nullable() });

/** One page of a list whose rows are counted. */
export const countedPageOf = <S extends z.ZodType>(item: S) =>
  pageOf(item).extend({
    total: z.int().optional().openapi({
      description:
        'How many match in all: on the first page, when there are more pages. Absent above 200,000, and on other pages.',
    }),
  });

/** A list that is short by nature, in one answer. */
export const listOf = <S extends z.ZodType>(item: S) => z.strictObject({ items: z.array(item).readonly() });

/**
 * A named schema, or null. `.nullable()` would keep the name, and the description of the API would
 * have null in the schema of that name.
 */
export const orNull = <S extends z.ZodType>(schema: S) => z.union([schema, z.null()]);

/** RFC 9457, with our members. */
export const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string().openapi({ enum: [...serviceErrorCodes], description: 'Stable; see docs/api.md.' }),
    requestId: z.string(),
    reason: z
      .literal('unconfirmed')
      .optional()
      .openapi({
        description:
          'unconfirmed: the change was made but not confirmed by every node, or it may still be made. Repeat the call with the same Idempotency-Key, ' +
          'or read the resource.',
      }),
    hint: z.string().optional().openapi({ description: 'How to fix it.' }),
    errors: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .openapi({ description: 'Which fields of the request are wrong.' }),
  })
  .openapi('Problem');
