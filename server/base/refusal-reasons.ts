// Words of the request log that the diagnostics read again.

/** How the log begins to say why a signature was refused. */
export const refusalReasons = {
  unknownKey: 'unknown access key id',
  mismatch: 'the signature does not match',
  skew: 'the request is dated',
} as const;
