// The causes of the provider’s log: each with its line and its return value, held together with
// errors.ts.
import { describe, expect, test } from 'vitest';
import { causeOfCode, ToldError, tell, tellNoAnswer, tellRefused } from '../../../provider/agent/causes.ts';
import { returnValueFor } from '../../../provider/agent/return-values.ts';
import type { CallName } from '../../../provider/schema/calls.ts';
import { type CauseRow, causeNames, causes, returnValuesOf } from '../../../provider/schema/causes.ts';
import { returnValueName } from '../../../provider/schema/return-values.ts';
import { ServiceError, serviceErrorCodes } from '../../../server/base/service-error.ts';

const calls: readonly CallName[] = [
  'C_GetAttributeValue',
  'C_EncryptInit',
  'C_Decrypt',
  'C_WrapKey',
  'C_UnwrapKey',
  'C_GenerateKey',
];
const origin = 'https://keys.example';

describe('a cause', () => {
  test.each(causeNames)('%s says what happened and what to do, in one line', (name) => {
    const { what, todo }: CauseRow = causes[name];
    for (const text of [what, todo]) expect(text).toMatch(/^[^\n]{10,200}$/);
    expect(`${what}${todo}`).not.toMatch(/access_guid \{|\{(?:token|pin|value)\}/);
  });

  test.each(serviceErrorCodes)('of the service’s %s has the return value that the program gets', (code) => {
    const refusal = tellRefused({ origin, code, reason: null, message: 'm', handle: 1 });
    if (refusal === null) return;
    for (const call of calls)
      expect(returnValuesOf(refusal.cause), call).toContain(
        returnValueName(returnValueFor(new ServiceError(code, ''), call)).replace('CKR_', ''),
      );
  });

  test.each([
    ['ECONNREFUSED', 'service-down'],
    ['EHOSTUNREACH', 'service-down'],
    ['ENOTFOUND', 'service-name'],
    ['EAI_AGAIN', 'service-name'],
    ['UND_ERR_CONNECT_TIMEOUT', 'service-slow'],
    ['UND_ERR_HEADERS_TIMEOUT', 'service-slow'],
    ['ETIMEDOUT', 'service-slow'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls-untrusted'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'tls-untrusted'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls-untrusted'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'tls-untrusted'],
    ['CERT_HAS_EXPIRED', 'tls-expired'],
    ['CERT_NOT_YET_VALID', 'tls-expired'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls-name'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls-failed'],
    ['EPROTO', 'tls-failed'],
  ] as const)('of %s is %s, and every way that fails is CKR_DEVICE_ERROR', (code, cause) => {
    expect(causeOfCode(code)).toBe(cause);
    expect(tellNoAnswer(origin, code).line).toContain(`${origin}`);
    expect(returnValuesOf(cause)).toEqual(['DEVICE_ERROR']);
  });

  test('that the agent finds itself comes out as its return value', () => {
    const error = new ToldError(tell('version-mismatch', { library: '2.0', agent: '1.0' }));
    expect(returnValueName(returnValueFor(error, 'C_Initialize'))).toBe('CKR_DEVICE_ERROR');
    expect(error.message).toMatch(/version 2\.0.*1\.0.*; install /);
  });

  test('has no line break and no end, whatever its facts are', () => {
    const { line } = tell('config-missing', { config: `/a\nb\u001b[2J${'x'.repeat(5000)}` });
    expect(line).toMatch(/^[\x20-\x7e]{600}$/);
  });
});
