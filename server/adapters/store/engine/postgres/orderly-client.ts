// A connection that is asked one thing at a time: who asks while an answer is awaited waits for a
// turn. pg keeps such a queue itself, warns of it, and gives it up with its next major version.
// What waits when the connection is lost fails with it.
//
// An answer that does not come in time (`query_timeout`) ends the connection: a host that vanished
// sends no reset, and TCP would try again for a quarter of an hour. Ending it needs no answer
// either.

import pg from 'pg';
import { asConnectionError, codeOf, endsConnection, NotPrimary } from './error-kinds.ts';
import { type Lineage, type Primary, primarySql } from './lineage.ts';
import type { Row } from './link-query.ts';
import {
  enterSql,
  findSchemaSql,
  pathOf,
  requireOwnBackend,
  requireSession,
  sessionColumns,
  setSessionSql,
} from './session-settings.ts';

export interface OrderlyConfig extends pg.ClientConfig {
  /**
   * Shared by the connections of one process; absent: the connection is not compared with others.
   */
  readonly lineage?: Lineage;
}

type Query = (...given: unknown[]) => Promise<unknown>;

/** How long the server has to hear of the end of a connection. */
const endMs = 1_000;
/** Functions that the role may not use, or that a managed service does not have. */
const notThere = ['42501', '42883', '0A000', '55000'];

/** Whether pg waited too long for an answer: pg has no code for this error. */
export const isReadTimeout = (error: unknown): boolean =>
  error instanceof Error && error.message === 'Query read timeout';

export class OrderlyClient extends pg.Client {
  #last: Promise<unknown> = Promise.resolve();
  #broken = false;
  readonly #lineage: Lineage | undefined;
  readonly #era: number;
  #primary: Primary | undefined;

  constructor(config?: OrderlyConfig) {
    super(config);
    this.#lineage = config?.lineage;
    this.#era = this.#lineage?.era() ?? 0;
    // A loss is told to what was asked. A pool listens to the connections that it has not given
    // out; for the others an event without a listener would be the end of the process.
    this.on('error', () => undefined);
    this.query = ((...given) => {
      const answer = this.#last
        .then(() => (pg.Client.prototype.query as Query).apply(this, given))
        .catch((error: unknown) => {
          if (isReadTimeout(error)) this.#lineage?.suspect();
          const told = asConnectionError(error);
          if (endsConnection(told)) this.drop();
          throw told;
        });
      this.#last = answer.catch(() => undefined);
      return answer;
    }) as Query as pg.Client['query'];
  }

  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): Promise<void> | undefined {
    const late = setTimeout(() => this.drop(), endMs);
    late.unref();
    this.once('end', () => clearTimeout(late));
    if (callback === undefined) return super.end();
    super.end(callback);
    return undefined;
  }

  /** Ends it without waiting for the server. */
  drop(): void {
    this.#broken = true;
    this.connection.stream.destroy();
  }

  /**
   * Connects, asks who answers and sets what the service depends on. Throws what `identify` does;
   * then nothing is left open.
   */
  async open(): Promise<void> {
    try {
      await this.connect();
      await this.identify();
    } catch (error) {
      this.drop();
      throw asConnectionError(error);
    }
  }

  /**
   * Sets what the service depends on, and asks who answers. Throws ConnectionLost, NotPrimary,
   * StoreError, or what the server says, and then the connection is not to be used.
   */
  async identify(): Promise<void> {
    const expected = this.#lineage?.schema();
    const { first } = (await this.query(enterSql)).rows[0] as { readonly first: string | null };
    const found = expected ?? ((await this.query(findSchemaSql, [first])).rows[0] as Row).schema;
    await this.query(setSessionSql, [pathOf(typeof found === 'string' ? found : null)]);
    const session = (await this.query(`select ${sessionColumns}`)).rows[0] as Row;
    this.requireBackend(session.backend);
    requireSession(session, expected);
    const { standby, system, timeline } = (
      await this.query(primarySql).catch((error: unknown) => {
        if (!notThere.includes(codeOf(error))) throw error;
        return { rows: [{ standby: false, system: '', timeline: 0 }] };
      })
    ).rows[0] as { readonly standby: boolean; readonly system: string; readonly timeline: number };
    if (standby)
      throw new NotPrimary('the server is a standby: promote it, or let the name of the host lead to the primary');
    const primary = { system, timeline };
    this.#lineage?.enter(primary, String(session.schema));
    this.#primary = primary;
  }

  /** Throws unless it is the server process that this connection was opened to. */
  requireBackend(found: unknown): void {
    requireOwnBackend((this as unknown as { readonly processID: number | null }).processID, found);
  }

  /** Who answers, once `identify` has asked. */
  get primary(): Primary | undefined {
    return this.#primary;
  }

  /** Whether it leads to the newest primary that this process knows. */
  get leadsToPrimary(): boolean {
    return this.#lineage === undefined || this.#lineage.isNewest(this.#primary);
  }

  /** Whether something new may be asked of it. */
  get isCurrent(): boolean {
    return !this.#broken && this.leadsToPrimary && this.#era === (this.#lineage?.era() ?? 0);
  }
}
