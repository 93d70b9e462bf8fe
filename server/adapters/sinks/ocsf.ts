// Records as events of the Open Cybersecurity Schema Framework 1.3 (schema.ocsf.io). Audit records
// are Authentication, Application Lifecycle, and Entity Management for everything that is done with
// a resource; requests are API Activity. What the schema has no place for stands under `unmapped`.

import { leafHash } from '../../base/merkle-tree.ts';
import {
  type AuditActivity,
  type AuditEvent,
  type AuditKind,
  type AuditSeverity,
  auditKinds,
  readableDetails,
} from '../../domain/audit-event.ts';
import type { LogItem } from '../../ports/log-sink.ts';

const severityIds: Readonly<Record<AuditSeverity, number>> = { info: 1, low: 2, medium: 3, high: 4, critical: 5 };

interface Class {
  readonly category: number;
  readonly id: number;
}
const authentication: Class = { category: 3, id: 3002 };
const entityManagement: Class = { category: 3, id: 3004 };
const applicationLifecycle: Class = { category: 6, id: 6002 };
const apiActivity: Class = { category: 6, id: 6003 };
const base: Class = { category: 0, id: 0 };
const other = 99;

/** What has been done with a resource, for each activity of the audit log that is one. */
const managed: Partial<Record<AuditActivity, number>> = {
  create: 1,
  read: 2,
  update: 3,
  delete: 4,
  enable: 8,
  disable: 9,
};
/** Records that are not about a resource. */
const classesOfKinds: Partial<Record<AuditKind, readonly [Class, number]>> = {
  'service.started': [applicationLifecycle, 3],
  'service.stopped': [applicationLifecycle, 4],
  'session.started': [authentication, 1],
  // A refused sign-in is an attempt.
  'sign-in.refused': [authentication, 1],
  'authentication.failed': [authentication, 1],
  'session.ended': [authentication, 2],
};
/**
 * The schema's names of activities, by class; an activity of none has the name that it has here.
 */
const activityNames: Readonly<Record<number, readonly (string | undefined)[]>> = {
  [authentication.id]: [undefined, 'Logon', 'Logoff'],
  [entityManagement.id]: [undefined, 'Create', 'Read', 'Update', 'Delete', ...Array(3), 'Enable', 'Disable'],
  [applicationLifecycle.id]: [undefined, undefined, undefined, 'Start', 'Stop'],
  [apiActivity.id]: [undefined, undefined, 'Read'],
};
const classification = ({ category, id }: Class, activityId: number, name: string): object => ({
  category_uid: category,
  class_uid: id,
  activity_id: activityId,
  activity_name: activityNames[id]?.[activityId] ?? name,
  type_uid: id * 100 + activityId,
});
const success = 1;
const failure = 2;

/** The kinds of actors that the schema knows by number. */
const userTypes: Partial<Record<AuditEvent['actorKind'], readonly [number, string]>> = {
  user: [1, 'User'],
  service: [3, 'System'],
};
const actorOf = ({ actorKind, actorId, actorName }: AuditEvent): object => {
  const [id, type] = userTypes[actorKind] ?? [other, actorKind];
  return { user: { uid: actorId, name: actorName, type_id: id, type } };
};
/** Who signs in or out: the actor of a sign-in, otherwise the subject, where one is known. */
const personOf = ({ kind, actorId, actorName, subjectKind, subjectId, details }: AuditEvent): object => {
  if (kind === 'session.started') return { uid: actorId, name: actorName };
  const name = typeof details.name === 'string' ? details.name : 'unknown';
  return subjectKind === 'service' ? { name } : { uid: subjectId, name };
};

const readActivity = 2;
/**
 * GetKeyMetadata and GetHealthStatus read; what Encrypt and Decrypt do is none of the schema's
 * activities.
 */
const isRead = (operation: string): boolean => /metadata|health/i.test(operation);

type RequestItem = LogItem & { readonly kind: 'request' };

const requestEvent = ({ sequence, request }: RequestItem, metadata: object): object => {
  const activityId = isRead(request.operation) ? readActivity : other;
  const refused = request.errorName !== null;
  return {
    ...classification(apiActivity, activityId, request.operation),
    severity_id: refused ? severityIds.low : severityIds.info,
    status_id: refused ? failure : success,
    status_code: request.errorName ?? String(request.status),
    ...(request.reason === null ? {} : { status_detail: request.reason }),
    time: request.at,
    duration: Math.round(request.durationMs),
    message: `request.${request.operation}`,
    metadata: { ...metadata, correlation_uid: request.requestId },
    actor: { user: { name: request.principal ?? 'unknown', credential_uid: request.credentialId ?? 'unknown' } },
    api: {
      operation: request.operation,
      service: { name: 'external key store proxy' },
      request: { uid: request.requestId },
      response: { code: request.status, ...(request.errorName === null ? {} : { error: request.errorName }) },
    },
    src_endpoint: request.peer === null ? { name: 'unknown' } : { ip: request.peer },
    resources: [request.externalKeyId, request.endpointId].flatMap((uid, at) =>
      uid === null ? [] : [{ uid, type: at === 0 ? 'external key' : 'key store endpoint' }],
    ),
    unmapped: {
      sequence,
      kmsOperation: request.kmsOperation,
      kmsRequestId: request.kmsRequestId,
      kmsKeyArn: request.kmsKeyArn,
      awsSourceVpc: request.awsSourceVpc,
      awsSourceVpce: request.awsSourceVpce,
      kmsViaService: request.kmsViaService,
      phases: request.phases,
    },
  };
};

/** `log` is the name of the log: records of two logs have the same numbers. */
export const toOcsf = (item: LogItem, log: string, version: string): object => {
  const metadata = (uid: string) => ({
    version: '1.3.0',
    product: { name: 'DKE', vendor_name: 'DKE', version },
    log_name: item.kind === 'request' ? 'requests' : 'audit',
    log_provider: log,
    // A log that went back to an older state has other records of the same numbers.
    uid: `${log}#${uid}-${leafHash(Buffer.from(item.text, 'utf8')).toString('hex').slice(0, 16)}`,
    sequence: item.sequence,
  });
  if (item.kind === 'request') return requestEvent(item, metadata(String(item.sequence)));
  if (item.kind === 'checkpoint')
    return {
      ...classification(base, other, 'checkpoint'),
      severity_id: severityIds.info,
      time: item.at,
      message: `checkpoint of ${item.sequence} records`,
      metadata: metadata(`checkpoint-${item.sequence}`),
      unmapped: JSON.parse(item.text) as object,
    };
  const { event } = item;
  const { severity, activity } = auditKinds[event.kind];
  const managedId = managed[activity] ?? other;
  const [eventClass, activityId] = classesOfKinds[event.kind] ?? [entityManagement, managedId];
  const failed = activity === 'refuse' || event.kind === 'authentication.failed';
  return {
    ...classification(eventClass, activityId, activity),
    severity_id: severityIds[severity],
    status_id: failed ? failure : success,
    time: event.at,
    message: event.kind,
    metadata: {
      ...metadata(String(event.sequence)),
      correlation_uid: event.requestId,
      tenant_uid: event.tenantId,
      // The schema gives an actor to the other classes only with this profile.
      ...(eventClass === authentication ? {} : { profiles: ['host'] }),
    },
    actor: actorOf(event),
    ...(eventClass === authentication ? { user: personOf(event), service: { name: 'DKE', version } } : {}),
    ...(eventClass === applicationLifecycle ? { app: { name: 'DKE', vendor_name: 'DKE', version } } : {}),
    ...(eventClass === entityManagement ? { entity: { uid: event.subjectId, type: event.subjectKind } } : {}),
    ...(event.peer === null || eventClass === applicationLifecycle ? {} : { src_endpoint: { ip: event.peer } }),
    unmapped: readableDetails(event.details),
  };
};
