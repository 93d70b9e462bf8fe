// The single answer to "may this key be used for this, now": each reason, and which one is given
// when there are several.
import { describe, expect, test } from 'vitest';
import { keyUsages } from '../../../server/domain/key.ts';
import {
  isExternalKey,
  isVaultOpen,
  refusalOfExternalKey,
  refusalOfState,
  refusalOfTokenKey,
} from '../../../server/domain/key-policy.ts';
import { keyStates } from '../../../server/domain/lifecycle.ts';
import type { TokenObject } from '../../../server/domain/tde.ts';
import { takesKey, tokenMechanisms } from '../../../server/domain/token-mechanisms.ts';

describe('use by state', () => {
  test('continues after soft deletion for a master key, not for a general one', () => {
    expect(refusalOfState({ kind: 'master', state: 'soft-deleted', disabledAt: null })).toBeNull();
    expect(refusalOfState({ kind: 'general', state: 'soft-deleted', disabledAt: null })).toBe('key-not-found');
  });

  test('of a disabled key does not come back by deleting it', () => {
    expect(refusalOfState({ kind: 'master', state: 'soft-deleted', disabledAt: 1 })).toBe('key-disabled');
  });

  test('ends with destruction, whatever else is set', () => {
    for (const kind of ['master', 'general'] as const)
      expect(refusalOfState({ kind, state: 'destroyed', disabledAt: 1 })).toBe('key-destroyed');
  });
});

const vault = { state: 'enabled', integrity: 'ok' } as const;
const master = { kind: 'master', state: 'active', disabledAt: null } as const;
const object = {
  class: 'secret-key',
  algorithm: 'aes',
  label: '',
  extractable: false,
  usages: ['encrypt', 'decrypt'],
  wrappedSensitive: false,
  rules: null,
} as const;
const data = { class: 'data', algorithm: null } as const;
const loaded = { object, key: master, vault };

describe('use of a token key', () => {
  test('is allowed for what the key is for', () => {
    expect(refusalOfTokenKey(loaded, 'encrypt', null)).toBeNull();
    expect(refusalOfTokenKey(loaded, 'sign', null)).toBe('usage');
    expect(refusalOfTokenKey(loaded, 'export', null)).toBe('not-extractable');
    expect(refusalOfTokenKey({ ...loaded, object: { ...object, extractable: true } }, 'export', null)).toBeNull();
    expect(refusalOfTokenKey({ ...loaded, key: undefined }, 'encrypt', null)).toBe('no-key');
  });

  test('takes a key of the type that the mechanism is for, and the half of its pair', () => {
    const as = (of: Partial<Pick<TokenObject, 'class' | 'algorithm' | 'usages'>>) => ({
      ...loaded,
      object: { ...object, usages: [...keyUsages], ...of },
    });
    const generic = as({ algorithm: 'generic' });
    const rsa = as({ class: 'private-key', algorithm: 'rsa' });
    const publicRsa = { ...as({ class: 'public-key', algorithm: 'rsa' }), key: undefined };
    expect(refusalOfTokenKey(as({}), 'sign', 'hmac-sha256')).toBe('key-type');
    expect(refusalOfTokenKey(as({}), 'sign', 'aes-cmac')).toBeNull();
    expect(refusalOfTokenKey(generic, 'sign', 'hmac-sha256')).toBeNull();
    expect(refusalOfTokenKey(generic, 'encrypt', 'aes-cbc')).toBe('key-type');
    expect(refusalOfTokenKey(rsa, 'sign', 'rsa-pss')).toBeNull();
    expect(refusalOfTokenKey(rsa, 'sign', 'ecdsa')).toBe('key-type');
    expect(refusalOfTokenKey(rsa, 'wrap', 'rsa-oaep')).toBe('key-type');
    expect(refusalOfTokenKey(publicRsa, 'wrap', 'rsa-oaep')).toBeNull();
    expect(refusalOfTokenKey(publicRsa, 'wrap', 'key-wrap')).toBe('key-type');
    expect(refusalOfTokenKey(publicRsa, 'wrap', null)).toBe('no-key');
    expect(refusalOfTokenKey(publicRsa, 'encrypt', 'rsa-oaep')).toBe('no-key');
    for (const mechanism of tokenMechanisms) expect(takesKey(mechanism, 'sign', data), mechanism).toBe(false);
  });

  test('never decrypts with a key that has wrapped sensitive keys', () => {
    const wrapping = { ...loaded, object: { ...object, wrappedSensitive: true } };
    expect(refusalOfTokenKey(wrapping, 'decrypt', null)).toBe('wraps-sensitive-keys');
    expect(refusalOfTokenKey(wrapping, 'encrypt', null)).toBeNull();
  });

  test.each(['TDE', 'TSE'])('encrypts nothing under a master key (%s) that does not decrypt', (form) => {
    const label = Buffer.from(`ORACLE.${form}.HSM.MK.06`).toString('base64');
    const unreadable = { ...loaded, object: { ...object, label, usages: ['encrypt', 'wrap'] as const } };
    expect(refusalOfTokenKey(unreadable, 'encrypt', null)).toBe('unreadable');
    expect(refusalOfTokenKey(unreadable, 'wrap', null)).toBeNull();
    const marked = { ...loaded, object: { ...object, label, wrappedSensitive: true } };
    expect(refusalOfTokenKey(marked, 'encrypt', null)).toBe('unreadable');
    expect(refusalOfTokenKey({ ...loaded, object: { ...object, label } }, 'encrypt', null)).toBeNull();
  });

  test('needs an open vault, also after soft deletion', () => {
    const deleted = { ...loaded, key: { ...master, state: 'soft-deleted' as const } };
    expect(refusalOfTokenKey(deleted, 'decrypt', null)).toBeNull();
    for (const closed of [{ ...vault, state: 'disabled' }, { ...vault, integrity: 'tampered' }, undefined] as const) {
      expect(isVaultOpen(closed)).toBe(false);
      expect(refusalOfTokenKey({ ...deleted, vault: closed }, 'decrypt', null)).toBe('vault');
    }
  });

  test('is refused for its usage before its state, and for its state before its vault', () => {
    const worst = { ...loaded, key: { ...master, state: 'disabled' as const }, vault: undefined };
    expect(refusalOfTokenKey(worst, 'sign', null)).toBe('usage');
    expect(refusalOfTokenKey(worst, 'encrypt', null)).toBe('key-disabled');
  });
});

describe('use of an external key', () => {
  const key = { ...master, kind: 'general', algorithm: 'aes', bits: 256, usages: ['encrypt', 'decrypt'] } as const;

  test('is allowed for an active AES-256 key with this usage', () => {
    expect(refusalOfExternalKey(key, 'encrypt')).toBeNull();
    expect(refusalOfExternalKey({ ...key, bits: 128 }, 'encrypt')).toBe('not-aes-256');
    expect(refusalOfExternalKey({ ...key, algorithm: 'generic' }, 'encrypt')).toBe('not-aes-256');
    expect(refusalOfExternalKey({ ...key, usages: ['decrypt'] }, 'encrypt')).toBe('usage');
  });

  test('is refused for its state before anything else', () => {
    expect(refusalOfExternalKey({ ...key, state: 'disabled', bits: 128, usages: [] }, 'encrypt')).toBe('key-disabled');
  });

  test('does not see deleted keys, of either kind', () => {
    expect(keyStates.filter((state) => isExternalKey({ state }))).toEqual(['active', 'disabled']);
  });
});
