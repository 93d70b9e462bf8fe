// Which connections belong to callers that have authenticated. The listener gives each connection a
// way to be proven, and the fronts use it once a request on it was authenticated. Behind a symbol
// of the socket, because a socket of HTTP/2 is shown to fronts as a proxy that hands on properties.

const proof = Symbol('proof');

interface Proof {
  caller: string | undefined;
  readonly of: {
    prove(caller: string, tenantId: string | null): void;
    use(): () => void;
  };
}
type Provable = { [proof]?: Proof };

export const expectProof = (socket: object, of: Proof['of']): void => {
  (socket as Provable)[proof] = { caller: undefined, of };
};

/**
 * `caller`, of a tenant or of none: whose places the connection takes from now on. Only the first
 * one counts.
 */
export const markProven = (socket: object, caller: string, tenantId: string | null): void => {
  const own = (socket as Provable)[proof];
  if (own === undefined || own.caller !== undefined) return;
  own.caller = caller;
  own.of.prove(caller, tenantId);
};

/** A request has come on this connection; the answer tells of its end. */
export const markUnderWay = (socket: object): (() => void) | undefined => (socket as Provable)[proof]?.of.use();
