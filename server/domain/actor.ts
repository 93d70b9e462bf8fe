// Who does something. Every audit record names one.

export interface Actor {
  readonly kind: 'administrator' | 'application' | 'service';
  /** Token id, application id, or 'service'. Never a credential. */
  readonly id: string;
  readonly name: string;
  /** The id of the request, echoed to the caller and borne by the audit record. */
  readonly requestId: string;
  /** Address of the peer, where there is one. */
  readonly peer: string | null;
}

/** The service acting by itself: start, erasure turn, summaries. */
export const serviceActor = (requestId: string): Actor => ({
  kind: 'service',
  id: 'service',
  name: 'service',
  requestId,
  peer: null,
});
