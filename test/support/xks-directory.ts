// An XksDirectory whose contents a test sets, with real keys in the addon. The service's own
// directory is tested with the server; this one serves the tests of the front alone.

import { core, type KeyRef } from '../../addon/core.ts';
import { refusalOfExternalKey } from '../../server/domain/key-policy.ts';
import type { XksDirectory, XksEndpointView, XksKeyView, XksRequestRecord } from '../../server/ports/xks-directory.ts';

export interface TestDirectory extends XksDirectory {
  readonly endpoints: Map<string, XksEndpointView>;
  readonly keys: Map<string, XksKeyView>;
  readonly records: XksRequestRecord[];
  /** Entries of `records` whose requests were the service's own probes. */
  readonly ownProbes: XksRequestRecord[];
  state: { healthy: boolean };
}

/** A generic key that holds the characters of a secret access key. */
export const secretKey = (characters: string): KeyRef =>
  core.importSecret('generic', Buffer.from(characters, 'latin1'));

export const aesKey = (id: string, overrides: Partial<Omit<XksKeyView, 'refusals'>> = {}): XksKeyView => {
  const key = {
    id,
    enabled: true,
    algorithm: 'aes',
    bits: 256,
    usages: ['encrypt', 'decrypt'],
    currentVersion: 1,
    versions: new Map([[1, core.generateAes(256)]]),
    binding: Buffer.from(`tenant/${id}`),
    ...overrides,
  };
  const facts = { ...key, kind: 'general', state: key.enabled ? 'active' : 'disabled', disabledAt: null } as const;
  const refusalOf = (use: 'encrypt' | 'decrypt') =>
    refusalOfExternalKey(facts as Parameters<typeof refusalOfExternalKey>[0], use);
  return { ...key, refusals: { encrypt: refusalOf('encrypt'), decrypt: refusalOf('decrypt') } };
};

export const createTestDirectory = (): TestDirectory => {
  const endpoints = new Map<string, XksEndpointView>();
  const keys = new Map<string, XksKeyView>();
  const records: XksRequestRecord[] = [];
  const ownProbes: XksRequestRecord[] = [];
  const state = { healthy: true };
  return {
    endpoints,
    keys,
    records,
    ownProbes,
    state,
    endpoint: (prefix) => endpoints.get(prefix),
    key: (endpoint, id) => (endpoint.externalKeyId === id ? keys.get(id) : undefined),
    fleetSize: () => 1,
    otherNodes: () => [],
    healthy: () => state.healthy,
    record: (entry, isOwnProbe) => {
      records.push(entry);
      if (isOwnProbe === true) ownProbes.push(entry);
    },
  };
};
