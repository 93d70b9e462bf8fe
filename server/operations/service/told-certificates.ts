// Which certificates a node serves, for the node that notifies: one setting for each node. It
// decides nothing, so that it has no authentication code; what cannot be read says nothing.
//
// Events of the log say which certificates a node began to serve. What a node has told before such
// an event says nothing about it: each text has the number of records that there were.

import { canonicalJson } from '../../base/bytes.ts';
import type { Clock } from '../../base/time.ts';
import { nodeSettings } from '../../domain/node.ts';
import type { ServedCertificate } from '../../ports/meter.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import { createTelling } from './told-setting.ts';

interface Told {
  readonly records: number;
  readonly fingerprints: readonly string[];
}

const fingerprint = /^(?:[0-9A-F]{2}:){31}[0-9A-F]{2}$/;
const mostCertificates = 1_000;

const isTold = (value: unknown): value is Told => {
  if (typeof value !== 'object' || value === null) return false;
  const { records, fingerprints } = value as Partial<Record<keyof Told, unknown>>;
  return (
    Number.isSafeInteger(records) &&
    Array.isArray(fingerprints) &&
    fingerprints.length > 0 &&
    fingerprints.length <= mostCertificates &&
    fingerprints.every((each) => typeof each === 'string' && fingerprint.test(each))
  );
};

/** Undefined: no node has written this. */
export const parseToldCertificates = (text: string): Told | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    return isTold(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

/** Fingerprints that a node serves; undefined: it has told none since this record of the log. */
export const readToldCertificates = async (
  { settings }: Pick<Repositories, 'settings'>,
  nodeId: string,
  since: number,
): Promise<readonly string[] | undefined> => {
  const text = await settings.get(nodeSettings.certificates(nodeId));
  const told = text === undefined ? undefined : parseToldCertificates(text);
  return told !== undefined && told.records >= since ? told.fingerprints : undefined;
};

/**
 * Tells the others what this node serves, where it has changed; `always` after an event of the log
 * about it. What cannot be told now is told with the next call.
 */
export const tellCertificates = (
  { store, clock }: Pick<Ports, 'store'> & { readonly clock: Pick<Clock, 'monotonic'> },
  nodeId: string,
  served: () => readonly ServedCertificate[],
): ((always?: boolean) => Promise<void>) => {
  const own = createTelling({ store, clock }, nodeId, 'certificates');
  let telling: Promise<void> = Promise.resolve();
  const write = async (): Promise<void> => {
    const fingerprints = [...new Set(served().map((each) => each.fingerprint))].sort();
    // Before the listener has its certificates, there is nothing to tell.
    if (fingerprints.length === 0) return;
    await own.tell(canonicalJson(fingerprints), async ({ audit }) =>
      canonicalJson({ records: await audit.size(), fingerprints }),
    );
  };
  return (always = false) => {
    if (store.link !== undefined)
      telling = telling.then(async () => {
        if (always) own.forget();
        await write().catch(() => undefined);
      });
    return telling;
  };
};
