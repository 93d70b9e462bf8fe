// What an observer learns of a request, and what became of what it sent. The access log and
// OpenTelemetry are such observers; without one, nothing of this is gathered.

export const requestFronts = ['xks', 'tde', 'api', 'health', 'metrics', 'console'] as const;
export type RequestFront = (typeof requestFronts)[number];

/** A part of the work for a request, in milliseconds since 1970. */
export interface RequestStep {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/**
 * A request whose answer has left, or whose connection has ended. Never contains a token, an
 * original path, or a body.
 */
export interface ObservedRequest {
  /** When its head was there, in milliseconds since 1970. */
  readonly at: number;
  readonly durationMs: number;
  /**
   * The request id in the answer's X-Request-Id and in audit records. Null: the connection ended
   * before one was assigned.
   */
  readonly requestId: string | null;
  readonly front: RequestFront;
  readonly method: string;
  /** The pattern of its path, or `unknown`. */
  readonly route: string;
  /** 499: the connection ended before the answer had left. */
  readonly status: number;
  /** The id of the token, user, application or access key; null: not authenticated. */
  readonly caller: string | null;
  readonly peer: string | null;
  /** Length of the answer's body. */
  readonly bytes: number;
  readonly steps: readonly RequestStep[];
}

export type RequestObserver = (request: ObservedRequest) => void;

interface SignalState {
  /** Since the process started. */
  readonly dropped: { readonly queue: number; readonly export: number };
  readonly failing: boolean;
}
export interface TelemetryState {
  readonly traces: SignalState;
  readonly metrics: SignalState;
}
