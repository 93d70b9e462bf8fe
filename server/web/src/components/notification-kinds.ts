// Kinds of notifications, as people choose among them.

import type { Notification } from '../api/types.ts';

export const notificationKindNames = {
  'key.rotation-due': 'Key rotation due',
  'master-key.rotation-due': 'Master key rotation due',
  'endpoint.credential-due': 'Endpoint credential due',
  'endpoint.credential-unused': 'New endpoint credential unused',
  'application.access-guid-due': 'access_guid due',
  'tls.certificate-ending': 'TLS certificate ends',
  'tls.certificate-old': 'TLS certificate is old',
  'client-authority.ending': 'Client authority ends',
  'client-certificate.ending': 'Client certificate expires',
  'token.expiring': 'Token expires',
  'key-store.disconnected': 'External key store not connected',
  'endpoint.failing': 'Endpoint refuses requests',
  'endpoint.late': 'Endpoint answers too late',
  'endpoint.slow': 'Endpoint is slow',
  'endpoint.tampered': 'Endpoint changed from outside',
  'approval.pending': 'Approval waits',
  'dual-control.unsatisfiable': 'Too few approvers',
  'audit.sink-behind': 'Audit sink behind',
  'audit.checkpoint-stale': 'Audit checkpoint stale',
  'snapshot.failed': 'Snapshot failed',
  'snapshot.old': 'Snapshot old',
  'erasure.held': 'Erasure held back',
  'erasure.failed': 'Erasure failed',
  'health.failing': 'Own check fails',
  'memory.unlocked': 'Memory not locked',
  'requests.dropped': 'Request log entries dropped',
  'clock.doubted': 'Clock jumped',
  'node.silent': 'Node silent',
} as const satisfies Record<Notification['kind'], string>;
