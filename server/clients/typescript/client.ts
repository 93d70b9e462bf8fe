// The client: a method for each operation of the API (clients/typescript/gen/operations.ts), pages
// and items of every list, and calls by operation for programs that choose the operation while they
// run.

import { Agent } from 'node:https';
import { ProblemError } from './client-errors.ts';
import { type Operations, operations } from './gen/operations.ts';
import { readAll } from './https.ts';
import type { AnswerOf, BodyOf, FileAnswer, Input, InputOf, Operation } from './operation.ts';
import { type Answer, answerWith, type CallOptions, parse, type Settings, send } from './send.ts';

type ItemOf<O> = O extends { readonly items: readonly (infer T)[] } ? T : never;
/** An input without required members may be left out. */
type Given<I> = Record<never, never> extends I ? [input?: I, options?: CallOptions] : [input: I, options?: CallOptions];

type Call<I, O> = (...given: Given<I>) => Promise<Answer<O>>;
/** Which state is replaced is part of the call. */
type ReplacingCall<I, O> = (
  input: I,
  options: CallOptions & { readonly ifMatch: string | undefined },
) => Promise<Answer<O>>;
interface PagedCall<I, O> extends Call<I, O> {
  /** Page by page, each read when it is asked for. */
  pages(...given: Given<I>): AsyncIterable<Answer<O>>;
  /** Item by item, over all pages. */
  items(...given: Given<I>): AsyncIterable<ItemOf<O>>;
}
type Method<E extends Operation> = E extends { readonly paged: true }
  ? PagedCall<InputOf<E>, AnswerOf<E>>
  : E extends { readonly replaces: true }
    ? ReplacingCall<InputOf<E>, AnswerOf<E>>
    : Call<InputOf<E>, AnswerOf<E>>;
type Methods = {
  readonly [G in keyof Operations]: { readonly [N in keyof Operations[G]]: Method<Operations[G][N] & Operation> };
};

export interface Calls {
  call<E extends Operation>(operation: E, input?: InputOf<E>, options?: CallOptions): Promise<Answer<AnswerOf<E>>>;
  /** The answer as bytes, for one with a secret. The caller wipes them. */
  bytes<E extends Operation>(operation: E, input?: InputOf<E>, options?: CallOptions): Promise<Answer<Buffer>>;
  /** The answer while it comes. */
  stream<E extends Operation>(operation: E, input?: InputOf<E>, options?: CallOptions): Promise<Answer<FileAnswer>>;
  pages<E extends Operation>(
    operation: E,
    input?: InputOf<E>,
    options?: CallOptions,
  ): AsyncIterable<Answer<AnswerOf<E>>>;
  items<E extends Operation>(
    operation: E,
    input?: InputOf<E>,
    options?: CallOptions,
  ): AsyncIterable<ItemOf<AnswerOf<E>>>;
  /**
   * Reads, edits what was read and writes it, when it is still what was read; again when another
   * change came first. `edit` may be called more than once.
   */
  change<R extends Operation, W extends Operation>(
    read: R,
    write: W,
    path: Readonly<Record<string, string>>,
    edit: (before: AnswerOf<R>) => BodyOf<W> | Promise<BodyOf<W>>,
    options?: CallOptions,
  ): Promise<Answer<AnswerOf<W>>>;
}
export interface Client extends Methods {
  readonly calls: Calls;
  /** Closes the connections that are kept for further calls. */
  close(): void;
}

/** To change what others change at the same time. */
const mostAttempts = 5;

/** Calls by operation. */
export const openCalls = (settings: Settings): Calls => {
  const bytes = (operation: Operation, input: Input = {}, options: CallOptions = {}): Promise<Answer<Buffer>> =>
    send(settings, operation, input, options, async (answer) => answerWith(answer, await readAll(answer.body)));
  const call = <E extends Operation>(operation: E, input?: InputOf<E>, options: CallOptions = {}) =>
    send(settings, operation, input ?? {}, options, async (answer) => {
      const body = parse<AnswerOf<E>>(answer.status, await readAll(answer.body));
      settings.onAnswer?.(operation, body);
      return answerWith(answer, body);
    });
  async function* pages<E extends Operation>(operation: E, input?: InputOf<E>, options?: CallOptions) {
    for (let after: unknown; after !== null; ) {
      const query = { ...input?.query, ...(after === undefined ? {} : { after: after as string }) };
      const page = await call(operation, { ...input, query } as InputOf<E>, options);
      yield page;
      after = (page.body as { readonly next?: string | null }).next ?? null;
    }
  }
  async function* items<E extends Operation>(operation: E, input?: InputOf<E>, options?: CallOptions) {
    for await (const { body } of pages(operation, input, options))
      yield* (body as { readonly items: readonly ItemOf<AnswerOf<E>>[] }).items;
  }
  return {
    call,
    bytes,
    pages,
    items,
    stream: (operation, input = {}, options = {}) =>
      send(settings, operation, input, options, async (answer) => answerWith(answer, answer.body)),
    change: async (read, write, path, edit, options) => {
      for (let attempt = 1; ; attempt += 1) {
        const { body: before, etag: ifMatch } = await call(read, { path }, options);
        const body = await edit(before);
        try {
          return await call(write, { path, body }, { ...options, ifMatch });
        } catch (error) {
          const isOvertaken = error instanceof ProblemError && error.code === 'precondition-failed';
          if (!isOvertaken || attempt === mostAttempts) throw error;
        }
      }
    },
  };
};

const methodOf = ({ call, stream, pages, items }: Calls, operation: Operation) => {
  const send = operation.streams === undefined ? call : stream;
  const method = (input?: Input, options?: CallOptions) => send(operation, input, options);
  if (operation.paged !== true) return method;
  return Object.assign(method, {
    pages: (input?: Input, options?: CallOptions) => pages(operation, input, options),
    items: (input?: Input, options?: CallOptions) => items(operation, input, options),
  });
};

/** A client of one service, with the rights of one token. */
export const openClient = (settings: Settings): Client => {
  const agent = settings.agent === undefined ? new Agent({ keepAlive: true }) : settings.agent;
  const calls = openCalls({ ...settings, agent });
  const groups = Object.entries(
    operations as unknown as Readonly<Record<string, Readonly<Record<string, Operation>>>>,
  ).map(([group, members]) => [
    group,
    Object.fromEntries(Object.entries(members).map(([name, operation]) => [name, methodOf(calls, operation)])),
  ]);
  return {
    ...(Object.fromEntries(groups) as Methods),
    calls,
    close: () => {
      if (agent !== false) agent.destroy();
    },
  };
};
