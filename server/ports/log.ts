// The server's own log. Fields contain no secret; as a second protection, the adapter redacts
// bearer credentials.

export type LogFields = { readonly [name: string]: unknown };

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/** Whether log lines reach their destination. */
export interface LogState {
  /** Lines that were lost since the process started. */
  readonly lost: number;
  /** Null: the last write succeeded. */
  readonly failure: { readonly since: number; readonly message: string; readonly lost: number } | null;
}
