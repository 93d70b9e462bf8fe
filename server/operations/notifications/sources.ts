// What people are told about, and how it is found out. Hourly the age of keys, for which every key
// is read; the rest each minute, so that what an operator has fixed is closed. Pages are short, so
// that a store with many rows delays no other work.

import type { Ports } from '../../ports/ports.ts';
import type { XksLatency } from '../requests/xks-latency.ts';
import { accessSources } from './access-sources.ts';
import { ageSources, type ReminderAges } from './age-sources.ts';
import { type CertificateViews, certificateSources } from './certificate-sources.ts';
import { exchangeSources } from './exchange-sources.ts';
import { keyStoreSources } from './key-store-sources.ts';
import { type ServiceViews, serviceSources } from './service-sources.ts';
import { snapshotSources } from './snapshot-sources.ts';
import type { NotificationSource } from './watch.ts';

export interface NotificationViews extends CertificateViews, ServiceViews {
  readonly latency: Pick<XksLatency, 'lastHour'>;
  /** When snapshots are made; null: they are made only on request. */
  readonly schedule: string | null;
  readonly reminders: ReminderAges;
}

export const createSources = (
  ports: Pick<Ports, 'store' | 'clock' | 'deadlines' | 'erasure' | 'core' | 'directory' | 'root' | 'ring' | 'fleet'>,
  views: NotificationViews,
): readonly NotificationSource[] => {
  const { store, clock, ring, fleet } = ports;
  const from = { read: store.read, clock };
  return [
    ...exchangeSources(from),
    ...certificateSources({ store, clock, fleet }, views),
    ...accessSources(from),
    ...snapshotSources(from, views.schedule),
    ...ageSources({ store, clock, ring }, views.reminders),
    ...keyStoreSources(from, views.latency),
    ...serviceSources(ports, views),
  ];
};
