// The certificates that this service serves, and those that a start has created.

import { serviceTenantId } from '../../base/ids.ts';
import type { Clock } from '../../base/time.ts';
import { toRfc3339 } from '../../base/time.ts';
import type { AuditEvent } from '../../domain/audit-event.ts';
import type { FleetNode } from '../../domain/node.ts';
import { type Condition, certificateDays, dayMs } from '../../domain/notification.ts';
import type { Fleet } from '../../ports/fleet.ts';
import type { ServedCertificate } from '../../ports/meter.ts';
import type { Store } from '../../ports/store.ts';
import { readToldCertificates } from '../service/told-certificates.ts';
import { recentRecords } from './recent-records.ts';
import type { NotificationSource } from './watch.ts';

export interface CertificateViews {
  readonly certificates: () => readonly ServedCertificate[];
  /**
   * Why the next start could not serve the certificates of the files, or clients would refuse them.
   */
  readonly certificateFaults: () => Promise<readonly string[]>;
}

export const certificateSources = (
  {
    store: { read, link },
    clock,
    fleet,
  }: {
    readonly store: Pick<Store, 'read' | 'link'>;
    readonly clock: Pick<Clock, 'now'>;
    readonly fleet: Pick<Fleet, 'nodes'>;
  },
  { certificates, certificateFaults }: CertificateViews,
): readonly NotificationSource[] => {
  const served = (): Promise<readonly Condition[]> => {
    const times = new Map<string, number>();
    return Promise.resolve(
      certificates().flatMap(({ names, beginsAt, endsAt }): readonly Condition[] => {
        const name = names.join(', ');
        const time = (times.get(name) ?? 0) + 1;
        times.set(name, time);
        // Two keys of different kinds may have certificates of the same names.
        const id = time === 1 ? name : `${name} (${time})`;
        const about = { tenantId: serviceTenantId, subject: { kind: 'certificate', id, name: id } };
        const details = { beginsAt: toRfc3339(beginsAt), endsAt: toRfc3339(endsAt) };
        return [
          { kind: 'tls.certificate-expiring', ...about, harmAt: endsAt, details },
          { kind: 'tls.certificate-old', ...about, harmAt: beginsAt + certificateDays * dayMs, details },
        ];
      }),
    );
  };

  const certificateFiles = async (): Promise<readonly Condition[]> => {
    const faults = await certificateFaults();
    if (faults.length === 0) return [];
    const subject = { kind: 'service', id: 'service', name: faults.join('; ') } as const;
    return [{ kind: 'tls.file-unusable', tenantId: serviceTenantId, subject, harmAt: null, details: { faults } }];
  };

  /**
   * Whether the node of an event may still serve the certificate that it is about: until the node
   * tells otherwise, it does. A node that does not share its store is this one, whatever its name
   * was.
   */
  const isServed = async (
    { sequence, details }: AuditEvent,
    nodes: readonly Pick<FleetNode, 'id' | 'name' | 'state' | 'self'>[],
  ): Promise<boolean> => {
    const own = certificates().map(({ fingerprint }) => fingerprint);
    const isIn = (served: readonly string[] | undefined): boolean =>
      served === undefined || served.length === 0 || served.includes(String(details.fingerprint));
    if (link === undefined) return isIn(own);
    const named = nodes.filter(({ name }) => name === details.node);
    for (const { id, state, self } of named)
      if (state !== 'removed' && isIn(self ? own : await readToldCertificates(read, id, sequence))) return true;
    return named.length === 0;
  };

  /**
   * Certificates that clients may not know, for a while after they were first served: each while
   * its node serves it, whatever the node serves beside it.
   */
  const unknownCertificates =
    (kind: 'tls.certificate-created' | 'tls.issuer-changed') => async (): Promise<readonly Condition[]> => {
      const found = new Map<string, Condition>();
      const nodes = await fleet.nodes();
      for await (const event of recentRecords(read, kind, clock.now())) {
        const { at, details } = event;
        const id = `${String(details.node)} ${String(details.fingerprint)}`;
        if (found.has(id) || !(await isServed(event, nodes))) continue;
        found.set(id, {
          kind,
          tenantId: serviceTenantId,
          subject: { kind: 'certificate', id, name: `${String(details.names)} on ${String(details.node)}` },
          harmAt: at,
          details: { ...details },
        });
      }
      return [...found.values()];
    };

  return [
    {
      about: 'the certificates',
      kinds: ['tls.certificate-expiring', 'tls.certificate-old'],
      every: 'minute',
      look: served,
    },
    {
      about: 'the files of the certificates',
      kinds: ['tls.file-unusable'],
      every: 'minute',
      look: certificateFiles,
    },
    {
      about: 'certificates that a start created',
      kinds: ['tls.certificate-created'],
      every: 'minute',
      look: unknownCertificates('tls.certificate-created'),
    },
    {
      about: 'certificates of another issuer',
      kinds: ['tls.issuer-changed'],
      every: 'minute',
      look: unknownCertificates('tls.issuer-changed'),
    },
  ];
};
