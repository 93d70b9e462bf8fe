// The log of XKS requests.

import { double, integer, long, plainTable, sequence, text } from './table.ts';

export const requestLogTables = {
  request_log: plainTable({
    columns: {
      sequence: sequence(),
      at: long(),
      endpoint_id: text({ null: true }),
      operation: text(),
      status: integer(),
      error_name: text({ null: true }),
      request_id: text(),
      kms_operation: text({ null: true }),
      kms_request_id: text({ null: true }),
      principal: text({ null: true }),
      kms_key_arn: text({ null: true }),
      external_key_id: text({ null: true }),
      credential_id: text({ null: true }),
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
      // By block: see request-log.ts.
      { name: 'request_log_by_kms_request', expression: '(sequence / 2000), kms_request_id' },
      { name: 'request_log_by_request', expression: '(sequence / 2000), request_id' },
      { name: 'request_log_unsigned', columns: ['sequence'], where: '"credential_id" is null' },
    ],
    unauthenticated: 'figures, for people',
    snapshots: { without: 'figures of their day' },
  }),
  /** Requests without a record, by the minute, until the audit log has them. */
  request_log_dropped: plainTable({
    columns: {
      minute: long({ key: true }),
      signed: long(),
      unsigned: long(),
    },
    unauthenticated: 'figures, for people',
    snapshots: 'of no tenant',
  }),
};
