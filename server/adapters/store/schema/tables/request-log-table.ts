// The log of XKS requests.

import type { XksRequestRecord } from '../../../../ports/xks-directory.ts';
import { double, integer, long, ofNoTenant, plainTable, type RowOf, sequence, text } from './table.ts';

export const requestLogTables = {
  request_log: plainTable({
    columns: {
      sequence: sequence(),
      at: long(),
      endpoint_id: text({ null: true, to: 'an endpoint that may be gone' }),
      operation: text(),
      status: integer(),
      error_name: text({ null: true }),
      request_id: text({ to: 'a request' }),
      kms_operation: text({ null: true }),
      kms_request_id: text({ null: true, to: 'a request of the cloud' }),
      principal: text({ null: true }),
      kms_key_arn: text({ null: true }),
      aws_source_vpc: text({ null: true }),
      aws_source_vpce: text({ null: true }),
      kms_via_service: text({ null: true }),
      external_key_id: text({ null: true, to: 'what the request named' }),
      credential_id: text({ null: true, to: 'what the request named' }),
      duration_ms: double(),
      read_ms: double(),
      auth_ms: double(),
      crypto_ms: double(),
      reason: text({ null: true }),
      peer: text({ null: true }),
    },
    indexes: [
      { name: 'request_log_by_endpoint', columns: ['endpoint_id', 'sequence'] },
      { name: 'request_log_by_time', columns: ['at', 'sequence'] },
      // Refusals are few, and are what people search for.
      { name: 'request_log_of_refusals', columns: ['endpoint_id', 'sequence'], where: '"error_name" is not null' },
      // Request ids are indexed by block: see request-log-table.ts.
      { name: 'request_log_by_kms_request', expression: '(sequence / 2000), kms_request_id' },
      { name: 'request_log_by_request', expression: '(sequence / 2000), request_id' },
      { name: 'request_log_unsigned', columns: ['sequence'], where: '"credential_id" is null' },
    ],
    unauthenticated: 'figures, for people',
    snapshots: { without: 'figures of their day' },
    purge: { kept: 'the audit log has their hashes; removed with their age' },
    search: { not: 'its own indexes find them' },
    statistics: { none: 'figures' },
    records: 'none',
    pruned: { by: 'their age, and the space that a tenant has' },
    copied: 'with the store',
    changes: { not: 'read at each use' },
  }),
  /** Requests without a record, by the minute, until the audit log has them. */
  request_log_dropped: plainTable({
    ...ofNoTenant,
    columns: {
      minute: long({ key: true }),
      signed: long(),
      unsigned: long(),
    },
    unauthenticated: 'figures, for people',
    pruned: { by: 'the record of the audit log that has them' },
  }),
};

type Row<T extends keyof typeof requestLogTables> = RowOf<(typeof requestLogTables)[T]>;

export const requestRow = (entry: XksRequestRecord) => ({
  at: entry.at,
  endpoint_id: entry.endpointId,
  operation: entry.operation,
  status: entry.status,
  error_name: entry.errorName,
  request_id: entry.requestId,
  kms_operation: entry.kmsOperation,
  kms_request_id: entry.kmsRequestId,
  principal: entry.principal,
  kms_key_arn: entry.kmsKeyArn,
  aws_source_vpc: entry.awsSourceVpc,
  aws_source_vpce: entry.awsSourceVpce,
  kms_via_service: entry.kmsViaService,
  external_key_id: entry.externalKeyId,
  credential_id: entry.credentialId,
  duration_ms: entry.durationMs,
  read_ms: entry.phases.readMs,
  auth_ms: entry.phases.authMs,
  crypto_ms: entry.phases.cryptoMs,
  reason: entry.reason,
  peer: entry.peer,
});

/**
 * The values of requestRow in its order, without an object between: this is done for every request
 * of the data path.
 */
export const pushRequest = (values: unknown[], entry: XksRequestRecord): void => {
  values.push(
    entry.at,
    entry.endpointId,
    entry.operation,
    entry.status,
    entry.errorName,
    entry.requestId,
    entry.kmsOperation,
    entry.kmsRequestId,
    entry.principal,
    entry.kmsKeyArn,
    entry.awsSourceVpc,
    entry.awsSourceVpce,
    entry.kmsViaService,
    entry.externalKeyId,
    entry.credentialId,
    entry.durationMs,
    entry.phases.readMs,
    entry.phases.authMs,
    entry.phases.cryptoMs,
    entry.reason,
    entry.peer,
  );
};

export const toRequest = (row: Row<'request_log'>): XksRequestRecord & { readonly sequence: number } => ({
  sequence: row.sequence,
  at: row.at,
  endpointId: row.endpoint_id,
  operation: row.operation,
  status: row.status,
  errorName: row.error_name,
  requestId: row.request_id,
  kmsOperation: row.kms_operation,
  kmsRequestId: row.kms_request_id,
  principal: row.principal,
  kmsKeyArn: row.kms_key_arn,
  awsSourceVpc: row.aws_source_vpc,
  awsSourceVpce: row.aws_source_vpce,
  kmsViaService: row.kms_via_service,
  externalKeyId: row.external_key_id,
  credentialId: row.credential_id,
  durationMs: row.duration_ms,
  phases: { readMs: row.read_ms, authMs: row.auth_ms, cryptoMs: row.crypto_ms },
  reason: row.reason,
  peer: row.peer,
});
