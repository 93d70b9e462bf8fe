// The last uses of endpoints' credentials and keys, until they are written.

import type { Endpoint } from '../../domain/endpoint.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Directory, EndpointUse } from '../../ports/working-memory.ts';
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

const nameOf = (endpointId: string, keyId: string): string => `${endpointId} ${keyId}`;

interface UseMarks extends Pick<Directory, 'drainCredentialUses' | 'keyUses' | 'keyUsesWritten'> {
  noteCredential(entry: Pick<XksRequestRecord, 'credentialId' | 'at'>): void;
  /** What the front sets: the same one for as long as the endpoint has this key. */
  markOf(endpoint: Pick<Endpoint, 'id' | 'keyId'>): XksUse;
}

/** `keyIdOf`: the key that this endpoint has now. */
export const createUseMarks = (
  { clock }: Pick<Ports, 'clock'>,
  keyIdOf: (endpointId: string) => string | undefined,
): UseMarks => {
  const credentials = new Map<string, number>();
  /**
   * Uses of keys by endpoint and key: a restore may give an endpoint another key. An endpoint that
   * is gone stays here until its last use is written.
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
      const held = keys.get(nameOf(id, keyId)) ?? { endpointId: id, keyId, use: { at: 0 }, written: 0 };
      keys.set(nameOf(id, keyId), held);
      return held.use;
    },
    keyUses: (all) => {
      const now = clock.now();
      return [...keys.values()]
        .filter(({ use, written }) => use.at > written && (all || now - written >= keyUsesEveryMs))
        .map(({ endpointId, keyId, use }): EndpointUse => ({ endpointId, keyId, at: use.at }));
    },
    keyUsesWritten: (uses) => {
      for (const { endpointId, keyId, at } of uses) {
        const held = keys.get(nameOf(endpointId, keyId));
        if (held !== undefined) held.written = Math.max(held.written, at);
      }
      for (const [name, { endpointId, keyId, use, written }] of keys)
        if (keyIdOf(endpointId) !== keyId && use.at <= written) keys.delete(name);
    },
  };
};
