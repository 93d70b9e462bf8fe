// What goes wrong between a cloud key service and a key, and what the cloud calls it: one table.
// The simulated cloud raises these names, the probe of external key stores and the doctor foretell
// them, and docs/cloud.md shows them (test/support/cloud-causes-page.ts). A row of `cloudCauses` is
// one cause with its evidence and its fix; its `fault` is how the cloud tells it from others.

/** What the cloud says at each of its operations. Null: it does not ask for this there. */
export interface CloudWords {
  /** CreateCustomKeyStore, UpdateCustomKeyStore. */
  readonly create: string | null;
  /** ConnectionErrorCode of ConnectCustomKeyStore. */
  readonly connect: string | null;
  readonly createKey: string | null;
  /** Encrypt, Decrypt and their like. */
  readonly use: string | null;
}

const fault = <Create extends string, Connect extends string>(create: Create, connect: Connect) => ({
  ...{ create, connect },
  // The cloud has one name for all that is not about the external key itself.
  ...({ createKey: 'CustomKeyStoreInvalidStateException', use: 'KMSInvalidStateException' } as const),
});

/** What can go wrong at a proxy, as the cloud tells it apart. */
export const cloudFaults = {
  unreachable: fault('XksProxyUriUnreachableException', 'XKS_PROXY_NOT_REACHABLE'),
  tls: fault('XksProxyUriUnreachableException', 'XKS_PROXY_INVALID_TLS_CONFIGURATION'),
  'timed-out': fault('XksProxyUriUnreachableException', 'XKS_PROXY_TIMED_OUT'),
  throttled: fault('XksProxyUriUnreachableException', 'XKS_PROXY_NOT_REACHABLE'),
  'dependency-timeout': fault('XksProxyUriUnreachableException', 'XKS_PROXY_TIMED_OUT'),
  'no-key-manager': fault('XksProxyUriUnreachableException', 'XKS_PROXY_NOT_REACHABLE'),
  response: fault('XksProxyInvalidResponseException', 'XKS_PROXY_INVALID_RESPONSE'),
  authentication: fault('XksProxyIncorrectAuthenticationCredentialException', 'INVALID_CREDENTIALS'),
  denied: fault('XksProxyInvalidConfigurationException', 'XKS_PROXY_ACCESS_DENIED'),
  path: fault('XksProxyInvalidConfigurationException', 'XKS_PROXY_INVALID_CONFIGURATION'),
  unsupported: fault('UnsupportedOperationException', 'XKS_PROXY_INVALID_RESPONSE'),
  'key-not-found': {
    ...fault('XksKeyNotFoundException', 'XKS_PROXY_INVALID_RESPONSE'),
    createKey: 'XksKeyNotFoundException',
  },
  'key-configuration': {
    ...fault('XksKeyInvalidConfigurationException', 'XKS_PROXY_INVALID_RESPONSE'),
    createKey: 'XksKeyInvalidConfigurationException',
  },
  ciphertext: {
    ...fault('XksProxyInvalidResponseException', 'XKS_PROXY_INVALID_RESPONSE'),
    use: 'InvalidCiphertextException',
  },
} as const satisfies Readonly<Record<string, CloudWords>>;
export type CloudFault = keyof typeof cloudFaults;

/**
 * errorName of the proxy's specification, the status it must come with, and the fault that it is.
 */
const proxyErrors: Readonly<Record<string, readonly [status: number, CloudFault]>> = {
  ValidationException: [400, 'response'],
  InvalidStateException: [400, 'key-configuration'],
  InvalidCiphertextException: [400, 'ciphertext'],
  InvalidKeyUsageException: [400, 'key-configuration'],
  AuthenticationFailedException: [401, 'authentication'],
  AccessDeniedException: [403, 'denied'],
  KeyNotFoundException: [404, 'key-not-found'],
  InvalidUriPathException: [404, 'path'],
  ThrottlingException: [429, 'throttled'],
  UnsupportedOperationException: [501, 'unsupported'],
  DependencyTimeoutException: [503, 'dependency-timeout'],
  InternalException: [500, 'response'],
};

/** Errors about one key or one ciphertext do not apply to other requests. */
const onlyFor: Readonly<Record<string, RegExp>> = {
  InvalidCiphertextException: /\/decrypt$/,
  KeyNotFoundException: /^\/keys\//,
  InvalidKeyUsageException: /^\/keys\//,
};

/**
 * The fault of an answer that is not 200, to this operation (its path below the store's). What does
 * not come from a proxy of keys (a page of a balancer, a redirection) is an invalid response.
 */
export const faultOfAnswer = (errorName: unknown, status: number, operation: string): CloudFault => {
  const name = typeof errorName === 'string' ? errorName : '';
  const row = Object.hasOwn(proxyErrors, name) ? proxyErrors[name] : undefined;
  return row?.[0] === status && (onlyFor[name]?.test(operation) ?? true) ? row[1] : 'response';
};

/**
 * What the cloud offers in its handshake: the suites of the proxy's specification, and no others.
 */
export const cloudOffer = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.3',
  ciphers: [
    ...['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'],
    ...['ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  ].join(':'),
} as const;

const tlsCodes =
  /^(ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|EPROTO|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/;

/**
 * The fault of a connection that failed with this code of the system, of TLS or of Node's HTTP
 * parser.
 */
export const faultOfConnection = (code: string): CloudFault =>
  tlsCodes.test(code) ? 'tls' : code.startsWith('HPE_') ? 'response' : 'unreachable';

interface CauseRow {
  readonly cause: string;
  readonly fault: CloudFault;
  /**
   * The cloud creates and connects a store without asking for a key: `keys` are not met there, and
   * of a key that cannot be used, GetHealthStatus says that its key manager is not available.
   */
  readonly of?: 'keys' | 'key-manager';
  /** The check of `dke doctor endpoint` that names it. */
  readonly check: string;
  readonly fix: string;
}

/** In the order of the checks. */
export const cloudCauses = {
  'endpoint-disabled': {
    cause: 'the endpoint, or its tenant, is disabled',
    ...{ fault: 'key-configuration', check: 'endpoint-enabled', fix: 'dke endpoint enable' },
  },
  'wrong-address': {
    cause: 'the cloud calls another address or path',
    ...{ fault: 'path', check: 'cloud-configuration' },
    fix: 'compare XksProxyUriEndpoint and XksProxyUriPath with dke endpoint show',
  },
  'wrong-credential': {
    cause: 'the cloud signs with another or a removed credential',
    ...{ fault: 'authentication', check: 'caller-signatures' },
    fix: 'enter a credential of this endpoint in the cloud key store',
  },
  'no-credential': {
    cause: 'the endpoint has no credential, or one that does not sign',
    ...{ fault: 'authentication', check: 'health-status-node', fix: 'dke endpoint credential add' },
  },
  'vault-gone': {
    cause: 'the vault is disabled or deleted',
    ...{ fault: 'key-not-found', of: 'key-manager', check: 'vault-enabled', fix: 'dke vault enable' },
  },
  'key-gone': {
    cause: 'the key is deleted or destroyed',
    ...{ fault: 'key-not-found', of: 'key-manager', check: 'key-found' },
    fix: 'create an endpoint with another key for new data',
  },
  'key-kind': {
    cause: 'the key is not AES-256 for encryption and decryption',
    ...{ fault: 'key-configuration', of: 'key-manager', check: 'key-kind' },
    fix: 'create an endpoint with an AES-256 key',
  },
  'key-disabled': {
    cause: 'the key is disabled',
    ...{ fault: 'key-configuration', of: 'key-manager', check: 'key-enabled', fix: 'dke key enable' },
  },
  'wrong-key-id': {
    cause: 'the cloud asks for another key id, or in other letters',
    ...{ fault: 'key-not-found', of: 'keys', check: 'key-asked-for' },
    fix: 'create the KMS key with the XksKeyId of dke endpoint show',
  },
  clock: {
    cause: 'the clock of the service is more than five minutes off',
    ...{ fault: 'authentication', check: 'clock', fix: 'let chrony or systemd-timesyncd set the clock' },
  },
  'no-name': {
    cause: 'the public name does not resolve',
    ...{ fault: 'unreachable', check: 'dns-resolves', fix: 'create an A or AAAA record for it' },
  },
  'no-connection': {
    cause: 'nothing accepts connections: the service is down, or a firewall refuses them',
    ...{ fault: 'unreachable', check: 'port-open', fix: 'start what should listen, and open the port' },
  },
  'tls-version': {
    cause: 'TLS versions or suites that the cloud does not offer',
    ...{ fault: 'tls', check: 'tls-handshake' },
    fix: 'enable TLS 1.2 or 1.3 with AES-256-GCM or ChaCha20-Poly1305',
  },
  'certificate-expired': {
    cause: 'the certificate expired, or is not valid yet',
    ...{ fault: 'tls', check: 'tls-expiry', fix: 'renew it, and reload what serves it' },
  },
  'certificate-name': {
    cause: 'the certificate is for another name',
    ...{ fault: 'tls', check: 'tls-name', fix: 'use a certificate for the public name' },
  },
  'certificate-chain': {
    cause: 'the chain is incomplete, or its authority is not trusted',
    ...{ fault: 'tls', check: 'tls-chain' },
    fix: "serve the issuers' certificates, of a public authority",
  },
  'another-answers': {
    cause: 'something in front answers: a page, a redirection, 403 of a firewall, 502 of a balancer',
    ...{ fault: 'response', check: 'public-health' },
    fix: 'let the public name lead to this service, and pass requests on',
  },
  'answers-changed': {
    cause: 'something in front changes answers',
    ...{ fault: 'response', check: 'health-status-public', fix: 'pass answers on unchanged' },
  },
  'requests-changed': {
    cause: 'something in front changes the Host, the path or the body of requests',
    ...{ fault: 'authentication', check: 'health-status-public', fix: 'pass requests on unchanged' },
  },
  'path-changed': {
    cause: 'something in front removes a part of the path',
    ...{ fault: 'path', check: 'health-status-public', fix: 'pass the path on unchanged' },
  },
  denied: {
    cause: 'a rule of the endpoint denies the request',
    ...{ fault: 'denied', of: 'keys', check: 'recent-errors' },
    fix: 'change the rule that the request log names, if it shall not deny this',
  },
  slow: {
    cause: 'answers take more than 250 ms',
    ...{ fault: 'timed-out', check: 'latency' },
    fix: 'move the service closer to the region, and check what is in front of it',
  },
} as const satisfies Readonly<Record<string, CauseRow>>;
export type CloudCause = keyof typeof cloudCauses;

/** What the cloud reports for a cause. */
export const wordsOf = (cause: CloudCause): CloudWords => {
  const row: CauseRow = cloudCauses[cause];
  const words: CloudWords = cloudFaults[row.fault];
  if (row.of === undefined) return words;
  const { create, connect } = cloudFaults['no-key-manager'];
  return row.of === 'keys' ? { ...words, create: null, connect: null } : { ...words, create, connect };
};

/** For people. */
export const tellReports = ({ create, connect, createKey, use }: CloudWords): string =>
  Object.entries({ 'create store': create, connect, 'create key': createKey, 'use key': use })
    .map(([operation, word]) => `${operation}: ${word ?? 'nothing'}`)
    .join(', ');

/** The name by which people look for it. */
export const exceptionOf = (cause: CloudCause): string => cloudFaults[cloudCauses[cause].fault].create;
