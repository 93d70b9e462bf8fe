// Checks of the endpoint diagnostics that cannot fail in a running service: an endpoint can only
// use AES-256 keys.
import { expect, test } from 'vitest';
import { keyKind } from '../../../server/adapters/diagnosis/checks/key-kind.ts';
import type { EndpointContext } from '../../../server/adapters/diagnosis/context.ts';

const withKey = (key: object): EndpointContext => ({ key }) as unknown as EndpointContext;

test.each([
  ['AES-128', { algorithm: 'aes', bits: 128, usages: ['encrypt', 'decrypt'] }],
  ['RSA', { algorithm: 'rsa', bits: 2048, usages: ['encrypt', 'decrypt'] }],
  ['a key that may not decrypt', { algorithm: 'aes', bits: 256, usages: ['encrypt'] }],
])('%s is a wrong kind of key', (_what, key) => {
  expect(keyKind.run(withKey(key))).toMatchObject({ state: 'failed', predicts: 'XksKeyInvalidConfigurationException' });
});

test('AES-256 for encrypt and decrypt is right', () => {
  expect(keyKind.run(withKey({ algorithm: 'aes', bits: 256, usages: ['encrypt', 'decrypt'] }))).toMatchObject({
    state: 'ok',
  });
});
