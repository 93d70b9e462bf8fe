// Texts of the request log that diagnostics and metrics read.

/**
 * The beginning of the log's text for a refused signature, and its text for a request that was
 * answered with 429.
 */
export const refusalReasons = {
  unknownKey: 'unknown access key id',
  unknownPath: 'no endpoint has this path; the access key id is',
  mismatch: 'the signature does not match',
  skew: 'the request is dated',
  rate: 'above the rate of the endpoint',
  load: 'the service was busy',
} as const;
