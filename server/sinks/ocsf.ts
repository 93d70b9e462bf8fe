// Records as events of the Open Cybersecurity Schema Framework 1.3 (schema.ocsf.io). Audit records are Authentication, Application Lifecycle,
// and Entity Management for everything that is done with a resource; requests are API Activity. What the schema has no place for stands under `unmapped`.

import { leafHash } from '../base/merkle-tree.ts';
import {
  type AuditActivity,
  type AuditKind,
  type AuditSeverity,
  auditKinds,
  readableDetails,
} from '../domain/audit-event.ts';
import type { LogItem } from '../ports/log-sink.ts';

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

const activities: Readonly<Record<AuditActivity, readonly [Class, number]>> = {
  'sign-in': [authentication, 1],
  start: [applicationLifecycle, 3],
  stop: [applicationLifecycle, 4],
  create: [entityManagement, 1],
  read: [entityManagement, 2],
  update: [entityManagement, 3],
  delete: [entityManagement, 4],
  enable: [entityManagement, 8],
  disable: [entityManagement, 9],
  refuse: [entityManagement, other],
  other: [entityManagement, other],
};
/** Records about signing in, whatever else their activity is here: a refused one is an attempt. */
const authentications: Partial<Record<AuditKind, readonly [Class, number]>> = {
  'sign-in.refused': [authentication, 1],
  'authentication.failed': [authentication, 1],
  'session.ended': [authentication, 2],
};
const success = 1;
const failure = 2;

const readActivity = 2;
/** GetKeyMetadata and GetHealthStatus read; what Encrypt and Decrypt do is none of the schema's activities. */
const isRead = (operation: string): boolean => /metadata|health/i.test(operation);

type RequestItem = LogItem & { readonly kind: 'request' };

const requestEvent = ({ sequence, request }: RequestItem, metadata: object): object => {
  const activityId = isRead(request.operation) ? readActivity : other;
  const refused = request.errorName !== null;
  return {
    category_uid: apiActivity.category,
    class_uid: apiActivity.id,
    activity_id: activityId,
    activity_name: request.operation,
    type_uid: apiActivity.id * 100 + activityId,
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
      category_uid: base.category,
      class_uid: base.id,
      activity_id: other,
      activity_name: 'checkpoint',
      type_uid: base.id * 100 + other,
      severity_id: severityIds.info,
      time: item.at,
      message: `checkpoint of ${item.sequence} records`,
      metadata: metadata(`checkpoint-${item.sequence}`),
      unmapped: JSON.parse(item.text) as object,
    };
  const { event } = item;
  const { severity, activity } = auditKinds[event.kind];
  const [{ category, id }, activityId] = authentications[event.kind] ?? activities[activity];
  const failed = activity === 'refuse' || event.kind === 'authentication.failed';
  return {
    category_uid: category,
    class_uid: id,
    activity_id: activityId,
    activity_name: activity,
    type_uid: id * 100 + activityId,
    severity_id: severityIds[severity],
    status_id: failed ? failure : success,
    time: event.at,
    message: event.kind,
    metadata: { ...metadata(String(event.sequence)), correlation_uid: event.requestId, tenant_uid: event.tenantId },
    actor: { user: { uid: event.actorId, name: event.actorName, type: event.actorKind } },
    ...(id === authentication.id
      ? { user: { uid: event.actorId, name: event.actorName }, service: { name: 'DKE', version } }
      : {}),
    ...(id === applicationLifecycle.id ? { app: { name: 'DKE', vendor_name: 'DKE', version } } : {}),
    ...(id === entityManagement.id ? { entity: { uid: event.subjectId, type: event.subjectKind } } : {}),
    ...(event.peer === null ? {} : { src_endpoint: { ip: event.peer } }),
    unmapped: readableDetails(event.details),
  };
};
