// The certificates that this service serves, and those that a start has created.

import type { Clock } from '../../base/clock.ts';
import { toRfc3339 } from '../../base/clock.ts';
import { serviceTenantId } from '../../base/ids.ts';
import type { AuditEvent } from '../../domain/audit-event.ts';
import { type Condition, certificateDays, dayMs } from '../../domain/notification.ts';
import { everyTenant } from '../../domain/tenant.ts';
import type { ServedCertificate } from '../../ports/meter.ts';
import type { Repositories } from '../../ports/store.ts';
import { createdDays, pageSize } from './recent-records.ts';
import type { NotificationSource } from './watch.ts';

export interface CertificateViews {
  readonly certificates: () => readonly ServedCertificate[];
  /**
   * Why the next start could not serve the certificates of the files, or clients would refuse them.
   */
  readonly certificateFaults: () => Promise<readonly string[]>;
}

export const certificateSources = (
  { read, clock }: { readonly read: Repositories; readonly clock: Pick<Clock, 'now'> },
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
   * Certificates that clients may not know, for a while after they were first served. Of each node
   * the newest: a later one takes the place of the one before.
   */
  const unknownCertificates =
    (kind: 'tls.certificate-created' | 'tls.issuer-changed') => async (): Promise<readonly Condition[]> => {
      const from = clock.now() - createdDays * dayMs;
      const of = (each: 'tls.certificate-created' | 'tls.issuer-changed') =>
        read.audit.list(everyTenant, { kind: each, from, order: 'newest' }, { limit: pageSize });
      const newest = new Map<string, AuditEvent>();
      for (const event of [...(await of('tls.certificate-created')), ...(await of('tls.issuer-changed'))]) {
        const node = String(event.details.node);
        if ((newest.get(node)?.sequence ?? 0) < event.sequence) newest.set(node, event);
      }
      return [...newest.values()]
        .filter((event) => event.kind === kind)
        .map(({ at, details }) => ({
          kind,
          tenantId: serviceTenantId,
          subject: {
            kind: 'certificate',
            id: String(details.fingerprint),
            name: `${String(details.names)} on ${String(details.node)}`,
          },
          harmAt: at,
          details: { ...details },
        }));
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
