// Words of the request log that diagnostics and metrics read again.

/** How the log begins to say why a signature was refused, and what it says of a request that was answered 429. */
export const refusalReasons = {
  unknownKey: 'unknown access key id',
  mismatch: 'the signature does not match',
  skew: 'the request is dated',
  rate: 'above the rate of the endpoint',
  load: 'the service was busy',
} as const;
