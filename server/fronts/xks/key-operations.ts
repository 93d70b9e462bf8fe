// One authenticated request and the operations on its key: Encrypt, Decrypt and GetKeyMetadata.
// GetHealthStatus is in health.ts.

import type { ExternalKeyRefusal } from '../../domain/key-policy.ts';
import type { XksCrypto, XksParsed, XksRequestMetadata } from '../../ports/xks-crypto.ts';
import type { XksDirectory, XksEndpointView, XksKeyView } from '../../ports/xks-directory.ts';
import { XksRefusal } from './xks-refusal.ts';

export interface XksContext {
  readonly core: XksCrypto;
  readonly directory: XksDirectory;
  /** Shown in GetHealthStatus. */
  readonly product: { readonly vendor: string; readonly name: string; readonly version: string; readonly node: string };
}

export interface XksCall {
  readonly endpoint: XksEndpointView;
  readonly externalKeyId: string | null;
  readonly parsed: ParsedBody;
}

export type ParsedBody = Extract<XksParsed, { ok: true }>;

/** An answer's JSON: text, or bytes that hold a plaintext and are wiped after they were sent. */
export type XksAnswer = string | Buffer;

export const jsonAnswer = (value: object): XksAnswer => JSON.stringify(value);

export const parseXksBody = (
  core: XksCrypto,
  operation: 'health' | 'metadata' | 'encrypt' | 'decrypt',
  body: Uint8Array,
): ParsedBody => {
  const parsed = core.xksParse(operation, body);
  if (!parsed.ok) throw new XksRefusal(parsed.errorName, parsed.message);
  return parsed;
};

export const requireMetadata = (parsed: ParsedBody): XksRequestMetadata => {
  if (parsed.requestMetadata === undefined) throw new XksRefusal('ValidationException', 'requestMetadata is missing');
  return parsed.requestMetadata;
};

/**
 * What is blocked for now comes back: the cloud is told of a state, not that something is missing.
 */
export const requireEnabled = (endpoint: XksEndpointView): void => {
  if (endpoint.suspended) throw new XksRefusal('InvalidStateException', 'the tenant of the key store is suspended');
  if (!endpoint.enabled) throw new XksRefusal('InvalidStateException', 'the key store endpoint is disabled');
};

type Use = keyof XksKeyView['refusals'];
const refusals = {
  'key-disabled': () => new XksRefusal('InvalidStateException', 'the key is disabled'),
  'not-aes-256': () => new XksRefusal('InvalidKeyUsageException', 'the key is not AES-256'),
  usage: (use) => new XksRefusal('InvalidKeyUsageException', `the key does not allow ${use}`),
} as const satisfies Record<ExternalKeyRefusal, (use: Use) => XksRefusal>;

const checkRules = ({ endpoint, parsed }: XksCall): void => {
  if (endpoint.settings.rules.length === 0) return;
  const rule = endpoint.denyingRule(requireMetadata(parsed));
  if (rule !== undefined)
    throw new XksRefusal('AccessDeniedException', 'a rule of the key store endpoint denies this request', {
      reason: `denied by the rule ${rule}`,
    });
};

/**
 * The key behind the endpoint, if this may be done with it now; `use` null asks for its metadata
 * only.
 */
export const findKey = (context: XksContext, call: XksCall, use: Use | null): XksKeyView => {
  requireEnabled(call.endpoint);
  const key = context.directory.key(call.endpoint, call.externalKeyId ?? '');
  if (key === undefined) throw new XksRefusal('KeyNotFoundException', 'no such key');
  const refusal = use === null ? null : key.refusals[use];
  if (use !== null && refusal !== null) throw refusals[refusal](use);
  checkRules(call);
  return key;
};

/**
 * The addon encrypts, computes the integrity value, decrypts what it produced, compares, and writes
 * the answer.
 */
export const encrypt = (context: XksContext, call: XksCall): XksAnswer => {
  const key = findKey(context, call, 'encrypt');
  const version = key.versions.get(key.currentVersion);
  if (version === undefined) throw new XksRefusal('KeyNotFoundException', 'no such key');
  return context.core.xksEncrypt(call.parsed.body, version, key.currentVersion, key.binding);
};

const undecipherable = (): XksRefusal =>
  new XksRefusal('InvalidCiphertextException', 'the ciphertext does not decrypt');

/** The key version is in the ciphertext's metadata, so what an older version sealed still opens. */
export const decrypt = (context: XksContext, call: XksCall): XksAnswer => {
  const key = findKey(context, call, 'decrypt');
  const version = key.versions.get(call.parsed.keyVersion);
  if (version === undefined) throw undecipherable();
  try {
    return context.core.xksDecrypt(call.parsed.body, version, key.binding);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'authentication-failed') throw undecipherable();
    throw error;
  }
};

const maxUsages = 10;

export const getKeyMetadata = (context: XksContext, call: XksCall): XksAnswer => {
  const key = findKey(context, call, null);
  return jsonAnswer({
    keySpec: key.algorithm === 'aes' ? `AES_${key.bits}` : `${key.algorithm.toUpperCase()}_${key.bits}`,
    keyUsage: key.usages.slice(0, maxUsages).map((usage) => usage.toUpperCase()),
    keyStatus: key.enabled ? 'ENABLED' : 'DISABLED',
  });
};
