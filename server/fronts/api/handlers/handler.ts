// What a handler of the API is, for every row of the contract: the types of `Handlers` make the compiler ask for every row.

import type { Grant } from '../../../domain/access.ts';
import type { TenantActor } from '../../../domain/actor.ts';
import type { ApiRoutes } from '../../contract/api/index.ts';
import type { AnswerOf, RouteInput, RouteRow } from '../../contract/api/row.ts';
import type { StreamedFile } from '../export.ts';

/** A JSON document that holds a secret, as bytes: it never was text, and is wiped when it has been sent. */
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

export type ApiCall<R extends RouteRow> = RouteInput<R> & {
  readonly actor: TenantActor;
  readonly grants: readonly Grant[];
};
export type Handler<R extends RouteRow> = (
  call: ApiCall<R>,
) => Promise<
  R extends { readonly creates: true }
    ? Created<AnswerOf<R>>
    : R extends { readonly streams: readonly string[] }
      ? StreamedFile
      : AnswerOf<R>
>;

/** Sessions are the front's own: see app.ts. */
export type ResourceRoutes = Omit<ApiRoutes, 'session'>;
export type Handlers = {
  readonly [G in keyof ResourceRoutes]: { readonly [N in keyof ResourceRoutes[G]]: HandlerOf<ResourceRoutes[G][N]> };
};
type HandlerOf<R> = R extends RouteRow ? Handler<R> : never;
