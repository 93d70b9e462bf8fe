// Who may have a body read. Every front reads and parses bodies, which costs more than to refuse
// them, so that limits come first: what reads a body takes the proof that its request was counted.
// There are three proofs, and no other code makes one (test/house/admission.test.ts).

import type { IncomingMessage } from 'node:http';
import type { OriginRates } from '../../base/origin-rates.ts';

declare const counted: unique symbol;
/** The request was counted before anything of its body was read. */
export interface Admission {
  readonly [counted]: true;
}
const admission = {} as Admission;

/** The caller has authenticated: the limits of connections and of the caller are about it. */
export const admitCaller = (_caller: { readonly id: string }): Admission => admission;

/** A stranger tries a credential. Throws 'rate-limited'. */
export const admitStranger = (rates: OriginRates, peer: string | null): Admission => {
  rates.admit(peer);
  return admission;
};

/** The signature of a request is over its body: the load decides. Throws `refusal`. */
export const admitByLoad = (_request: IncomingMessage, isOverdue: () => boolean, refusal: Error): Admission => {
  if (isOverdue()) throw refusal;
  return admission;
};
