// A record of the request log for tests that need only its presence.

import type { XksRequestRecord } from '../../server/ports/xks-directory.ts';

export const requestRecord = (at: number, principal: string | null = null): XksRequestRecord => ({
  at,
  requestId: `r-${at}`,
  endpointId: 'e',
  operation: 'encrypt',
  kmsOperation: null,
  kmsRequestId: null,
  principal,
  kmsKeyArn: null,
  awsSourceVpc: null,
  awsSourceVpce: null,
  kmsViaService: null,
  externalKeyId: null,
  credentialId: 'c',
  status: 200,
  errorName: null,
  durationMs: 1,
  phases: { readMs: 0, authMs: 0, cryptoMs: 0 },
  reason: null,
  peer: null,
});
