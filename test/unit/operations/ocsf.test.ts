// Forwarded audit records are events of OCSF 1.3: each kind has the class that the schema has for
// it, with what that class requires.
import { expect, test } from 'vitest';
import { type AuditKind, auditKinds } from '../../../server/domain/audit-event.ts';
import { toOcsf } from '../../../server/sinks/ocsf.ts';

interface Event {
  readonly [name: string]: unknown;
  readonly class_uid: number;
  readonly activity_id: number;
  readonly type_uid: number;
  readonly status_id: number;
}
const eventOf = (kind: AuditKind): Event =>
  toOcsf(
    {
      kind: 'record',
      sequence: 7,
      text: '{}',
      event: {
        sequence: 7,
        at: 1,
        kind,
        actorKind: 'user',
        actorId: 'actor',
        actorName: 'ada',
        peer: '192.0.2.1',
        tenantId: 'tenant',
        subjectKind: 'user',
        subjectId: 'subject',
        requestId: 'request',
        details: {},
      },
    },
    'dke/audit/one',
    '1.0.0',
  ) as Event;

/**
 * Required attributes and activities of the classes (schema.ocsf.io, 1.3.0); `base` of every one.
 */
const base = ['activity_id', 'category_uid', 'class_uid', 'metadata', 'severity_id', 'time', 'type_uid'];
const classes: Readonly<
  Record<
    number,
    { readonly category: number; readonly required: readonly string[]; readonly activities: readonly number[] }
  >
> = {
  // At least one of service and dst_endpoint.
  3002: { category: 3, required: ['user', 'service'], activities: [0, 1, 2, 3, 4, 5, 6, 99] },
  3004: { category: 3, required: ['entity'], activities: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99] },
  6002: { category: 6, required: ['app'], activities: [0, 1, 2, 3, 4, 5, 6, 7, 8, 99] },
};
test.each(Object.keys(auditKinds) as AuditKind[])('%s', (kind) => {
  const event = eventOf(kind);
  const of = classes[event.class_uid];
  expect(of).toBeDefined();
  expect(Object.keys(event)).toEqual(expect.arrayContaining([...base, ...(of?.required ?? [])]));
  expect(event.category_uid).toBe(of?.category);
  expect(of?.activities).toContain(event.activity_id);
  expect(event.type_uid).toBe(event.class_uid * 100 + event.activity_id);
});
test('a sign-in that was refused is an authentication that failed', () => {
  for (const kind of ['sign-in.refused', 'authentication.failed'] as const)
    expect(eventOf(kind)).toMatchObject({ class_uid: 3002, activity_id: 1, status_id: 2 });
  expect(eventOf('session.started')).toMatchObject({ class_uid: 3002, activity_id: 1, status_id: 1 });
  expect(eventOf('session.ended')).toMatchObject({ class_uid: 3002, activity_id: 2, status_id: 1 });
});
