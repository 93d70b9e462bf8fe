// The last uses of endpoints' credentials and keys, until they are written.

import type { Endpoint } from '../../domain/endpoint.ts';
import type { Directory, EndpointUse } from '../../ports/directory.ts';
import type { Ports } from '../../ports/ports.ts';
import type { XksRequestRecord, XksUse } from '../../ports/xks-directory.ts';

/** Busy endpoints use their keys all the time: for people it is enough to know it to this. */
const keyUsesEveryMs = 10_000;

interface HeldUse {
  readonly endpointId: string;
  readonly keyId: string;
  readonly use: XksUse;
  /** The last use that was written; 0: none. */
  written: number;
}

interface UseMarks extends Pick<Directory, 'drainCredentialUses' | 'keyUses' | 'keyUsesWritten'> {
  noteCredential(entry: Pick<XksRequestRecord, 'credentialId' | 'at'>): void;
  /** What the front sets: the same one for as long as the endpoint is there. */
  markOf(endpoint: Pick<Endpoint, 'id' | 'keyId'>): XksUse;
}

export const createUseMarks = ({ clock }: Pick<Ports, 'clock'>, isHeld: (endpointId: string) => boolean): UseMarks => {
  const credentials = new Map<string, number>();
  /**
   * Uses of keys by endpoint id. An endpoint that is gone stays here until its last use is written.
   */
  const keys = new Map<string, HeldUse>();
  return {
    noteCredential: ({ credentialId, at }) => {
      if (credentialId !== null) credentials.set(credentialId, at);
    },
    drainCredentialUses: () => {
      const taken = new Map(credentials);
      credentials.clear();
      return taken;
    },
    markOf: ({ id, keyId }) => {
      const held = keys.get(id) ?? { endpointId: id, keyId, use: { at: 0 }, written: 0 };
      keys.set(id, held);
      return held.use;
    },
    keyUses: (all) => {
      const now = clock.now();
      return [...keys.values()]
        .filter(({ use, written }) => use.at > written && (all || now - written >= keyUsesEveryMs))
        .map(({ endpointId, keyId, use }): EndpointUse => ({ endpointId, keyId, at: use.at }));
    },
    keyUsesWritten: (uses) => {
      for (const { endpointId, at } of uses) {
        const held = keys.get(endpointId);
        if (held !== undefined) held.written = Math.max(held.written, at);
      }
      for (const [id, { use, written }] of keys) if (!isHeld(id) && use.at <= written) keys.delete(id);
    },
  };
};
