// Published vectors of what works with a secret key: AES in CBC with padding and GCM, AES key wrap,
// CMAC, HMAC, HKDF (Wycheproof, and the examples of RFC 3394 and RFC 5649). Every valid case must
// give the exact bytes, every invalid one must be refused.
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CipherParameters, MacParameters } from '../../../addon/core.ts';
import { aesKey, core, genericKey, runCipher, runMac, withKey } from '../../support/core-keys.ts';
import {
  hex,
  readVectors,
  runVectors,
  unlessRefused,
  type VectorCase,
  type VectorFile,
  type VectorOutcome,
  vectorFolder,
} from '../../support/vectors.ts';

const folder = vectorFolder('wycheproof');
const read = <G, T extends VectorCase>(name: string): VectorFile<G, T> => readVectors(join(folder ?? '', name));

/**
 * Accepted when the core returns exactly the result in the file. Any other result is a fault, not a
 * refusal.
 */
const verdict = (output: Uint8Array | null, expected: Uint8Array): VectorOutcome => {
  if (output === null) return 'refused';
  if (!Buffer.from(output).equals(expected)) throw new Error('another output than the vector’s');
  return 'accepted';
};

describe.runIf(folder !== null)('Wycheproof, secret keys', () => {
  interface Cipher extends VectorCase {
    readonly key: string;
    readonly iv: string;
    readonly msg: string;
    readonly ct: string;
  }
  interface Aead extends Cipher {
    readonly aad: string;
    readonly tag: string;
  }

  /** Encrypts valid cases and decrypts every case; an invalid case is one that must not decrypt. */
  const cipherCase = (
    given: Cipher,
    parameters: CipherParameters,
    message: Uint8Array,
    ciphertext: Uint8Array,
  ): VectorOutcome =>
    withKey(aesKey(hex(given.key)), (key) => {
      if (given.result === 'valid') {
        const encrypted = unlessRefused(() => runCipher(key, 'encrypt', parameters, message));
        if (verdict(encrypted, ciphertext) === 'refused') return 'refused';
      }
      const opened = unlessRefused(() => runCipher(key, 'decrypt', parameters, ciphertext));
      return given.result === 'invalid' ? (opened === null ? 'refused' : 'accepted') : verdict(opened, message);
    });

  test('aes_cbc_pkcs5_test.json', () => {
    const run = runVectors(read<unknown, Cipher>('aes_cbc_pkcs5_test.json'), (_, given) =>
      cipherCase(given, { algorithm: 'aes-cbc-pad', iv: hex(given.iv) }, hex(given.msg), hex(given.ct)),
    );
    expect(run).toEqual({ wrong: [], ran: 216, skipped: {} });
  });

  test('aes_gcm_test.json', () => {
    const run = runVectors(
      read<{ readonly ivSize: number; readonly tagSize: number }, Aead>('aes_gcm_test.json'),
      (group, given) => {
        if (group.ivSize > 1024) return { skip: 'the IV is longer than the 128 bytes that libcrypto’s GCM holds' };
        const iv = hex(given.iv);
        const parameters = { algorithm: 'aes-gcm', iv, aad: hex(given.aad), tagLength: group.tagSize / 8 } as const;
        return cipherCase(given, parameters, hex(given.msg), Buffer.concat([hex(given.ct), hex(given.tag)]));
      },
    );
    const skipped = { 'the IV is longer than the 128 bytes that libcrypto’s GCM holds': 3 };
    expect(run).toEqual({ wrong: [], ran: 313, skipped });
  });

  interface Mac extends VectorCase {
    readonly key: string;
    readonly msg: string;
    readonly tag: string;
  }
  interface MacGroup {
    readonly tagSize: number;
  }
  /** Tags that are cut short are compared with the first bytes, as CKM_*_GENERAL does. */
  const macCase = (group: MacGroup, given: Mac, parameters: MacParameters): VectorOutcome => {
    const key = unlessRefused(() =>
      parameters.algorithm === 'hmac' ? genericKey(hex(given.key)) : aesKey(hex(given.key)),
    );
    if (key === null) return 'refused';
    const tag = withKey(key, () => runMac(key, parameters, hex(given.msg)));
    return core.timingSafeEqual(tag.subarray(0, group.tagSize / 8), hex(given.tag)) ? 'accepted' : 'refused';
  };

  test('aes_cmac_test.json', () => {
    const run = runVectors(read<MacGroup, Mac>('aes_cmac_test.json'), (group, given) =>
      macCase(group, given, { algorithm: 'aes-cmac' }),
    );
    expect(run).toEqual({ wrong: [], ran: 311, skipped: {} });
  });

  test.each([
    ['hmac_sha256_test.json', 'sha256'],
    ['hmac_sha512_test.json', 'sha512'],
  ] as const)('%s', (name, digest) => {
    const run = runVectors(read<MacGroup, Mac>(name), (group, given) =>
      macCase(group, given, { algorithm: 'hmac', digest }),
    );
    expect(run).toEqual({ wrong: [], ran: 174, skipped: {} });
  });

  interface Wrap extends VectorCase {
    readonly key: string;
    readonly msg: string;
    readonly ct: string;
  }
  const wrapCase = (given: Wrap, padded: boolean): VectorOutcome =>
    withKey(aesKey(hex(given.key)), (key) => {
      const opened = unlessRefused(() => core.unwrapData(key, { padded }, hex(given.ct)));
      // What is refused as data is refused as a key, too.
      const asKey = unlessRefused(() => core.unwrapKey(key, { way: 'key-wrap', padded }, hex(given.ct), 'generic'));
      if ((opened === null) !== (asKey === null)) throw new Error('data and keys unwrap differently');
      if (asKey !== null) core.release(asKey);
      if (given.result === 'invalid') return opened === null ? 'refused' : 'accepted';
      if (verdict(opened, hex(given.msg)) === 'refused') return 'refused';
      return verdict(
        withKey(genericKey(hex(given.msg)), (inner) => core.wrapKey(key, { way: 'key-wrap', padded }, inner)),
        hex(given.ct),
      );
    });

  test('aes_wrap_test.json', () => {
    const run = runVectors(read<unknown, Wrap>('aes_wrap_test.json'), (_, given) => wrapCase(given, false), {
      ShortKey: { accepted: false, because: 'RFC 3394, section 2: at least two 64-bit blocks' },
    });
    expect(run).toEqual({ wrong: [], ran: 165, skipped: {} });
  });

  test('aes_kwp_test.json', () => {
    const run = runVectors(read<unknown, Wrap>('aes_kwp_test.json'), (_, given) => wrapCase(given, true));
    expect(run).toEqual({ wrong: [], ran: 254, skipped: {} });
  });

  interface Hkdf extends VectorCase {
    readonly ikm: string;
    readonly salt: string;
    readonly info: string;
    readonly size: number;
    readonly okm: string;
  }
  test('hkdf_sha256_test.json', () => {
    const tooLong = 'a key here has at most 4096 bytes';
    const run = runVectors(read<unknown, Hkdf>('hkdf_sha256_test.json'), (_, given) => {
      if (given.size > 4096 && given.result === 'valid') return { skip: tooLong };
      return withKey(genericKey(hex(given.ikm)), (key) => {
        const derived = unlessRefused(() =>
          core.hkdf(key, 'sha256', hex(given.salt), hex(given.info), 'generic', given.size),
        );
        return derived === null
          ? 'refused'
          : withKey(derived, () => verdict(core.exportSecret(derived), hex(given.okm)));
      });
    });
    expect(run).toEqual({ wrong: [], ran: 83, skipped: { [tooLong]: 3 } });
  });
});

const wraps = vectorFolder('keywrap', 'aes-key-wrap.json');
describe.runIf(wraps !== null)('RFC 3394 and RFC 5649', () => {
  interface Example {
    readonly id: string;
    readonly mode: 'kw' | 'kwp';
    readonly key: string;
    readonly plaintext: string;
    readonly wrapped: string;
  }
  const examples = wraps === null ? [] : readVectors<readonly Example[]>(wraps);

  test('every example, both ways', () => {
    for (const { key, mode, plaintext, wrapped } of examples) {
      withKey(aesKey(hex(key)), (wrapping) => {
        expect(core.wrapData(wrapping, { padded: mode === 'kwp' }, hex(plaintext)).toString('hex')).toBe(wrapped);
        expect(core.unwrapData(wrapping, { padded: mode === 'kwp' }, hex(wrapped)).toString('hex')).toBe(plaintext);
      });
    }
    expect(examples).toHaveLength(8);
  });
});
