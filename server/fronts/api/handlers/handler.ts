// What a handler of the API is, for every row of the contract: the types of `Handlers` make the
// compiler ask for every row.

import type { ApiRoutes } from '../../../contract/api/index.ts';
import type { AnswerOf, RouteInput, RouteRow } from '../../../contract/api/row.ts';
import type { Grant } from '../../../domain/access.ts';
import type { TenantActor } from '../../../domain/actor.ts';
import type { SessionCaller, SignInOrigin } from '../../../operations/people/people-operations.ts';
import type { StreamedFile } from '../export.ts';

/**
 * A JSON document that holds a secret, as bytes: it never was text, and is wiped when it has been
 * sent.
 */
export class SecretJson {
  readonly bytes: Buffer;
  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
}

export interface Created<A> {
  /** Last segment of the `Location`. */
  readonly id: string;
  readonly answer: A | SecretJson;
}

/** The answer, and the session that the browser has from now on; null: none. */
export class SessionChange<A> {
  readonly answer: A;
  readonly session: string | null;
  /** Where the browser goes: for an answer that no page has asked for. */
  readonly location: string | null;
  constructor(answer: A, session: string | null, location: string | null = null) {
    this.answer = answer;
    this.session = session;
    this.location = location;
  }
}

/** The answer, and what the browser brings along when it comes back from the OpenID provider. */
export class BoundAnswer<A> {
  readonly answer: A;
  readonly binding: string;
  constructor(answer: A, binding: string) {
    this.answer = answer;
    this.binding = binding;
  }
}

export type ApiCall<R extends RouteRow> = RouteInput<R> & {
  readonly actor: TenantActor;
  readonly grants: readonly Grant[];
  /** Set when a browser's session acts. */
  readonly session: SessionCaller | null;
  readonly from: SignInOrigin;
  /** The query as it came, with its `?`, and the cookie of a sign-in at the OpenID provider. */
  readonly search: string;
  readonly binding: string | undefined;
  /**
   * The row's `secrets` that the request has. The operation that takes one wipes it; the front
   * wipes the rest.
   */
  readonly secrets: Readonly<Record<string, Buffer>>;
};
export type Handler<R extends RouteRow> = (
  call: ApiCall<R>,
) => Promise<
  R extends { readonly creates: true }
    ? Created<AnswerOf<R>>
    : R extends { readonly streams: readonly string[] }
      ? StreamedFile
      : R extends { readonly setsSession: true }
        ? SessionChange<AnswerOf<R>>
        : AnswerOf<R> | BoundAnswer<AnswerOf<R>>
>;

export type Handlers = {
  readonly [G in keyof ApiRoutes]: { readonly [N in keyof ApiRoutes[G]]: HandlerOf<ApiRoutes[G][N]> };
};
type HandlerOf<R> = R extends RouteRow ? Handler<R> : never;
