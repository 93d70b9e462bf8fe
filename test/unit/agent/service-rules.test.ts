// What a template lays down for a key reaches the service in its own words; what has no word there
// stays with the agent.
import { expect, test } from 'vitest';
import { rulesOf } from '../../../provider/agent/service/service-rules.ts';
import { CKA } from '../../../provider/schema/attributes.ts';
import { CKK, CKO } from '../../../provider/schema/constants.ts';
import { CKM } from '../../../provider/schema/mechanisms.ts';
import type { AttributeValue } from '../../../provider/schema/types.ts';
import { decodeHead, encodeHead } from '../../../server/contract/tde.ts';
import { masterKey } from '../../support/open-service.ts';
import { type Row, template } from '../../support/template.ts';

const rows = (...given: Row[]): AttributeValue => template(...given);

test('a key without such attributes, or with empty ones, has no rules', () => {
  expect(rulesOf(new Map([[CKA.SENSITIVE, true]]))).toBeUndefined();
  const empty = [CKA.ALLOWED_MECHANISMS, CKA.WRAP_TEMPLATE, CKA.UNWRAP_TEMPLATE, CKA.DERIVE_TEMPLATE];
  const attributes = new Map<number, AttributeValue>(empty.map((type) => [type, []]));
  expect(rulesOf(attributes.set(CKA.WRAP_WITH_TRUSTED, false))).toBeUndefined();
});

test('every rule is named, once, and the service reads it', () => {
  const attributes = new Map<number, AttributeValue>([
    [CKA.ALLOWED_MECHANISMS, [CKM.SHA256_HMAC, CKM.SHA256_HMAC_GENERAL, CKM.EDDSA, CKM.AES_KEY_GEN]],
    [CKA.WRAP_WITH_TRUSTED, true],
    [CKA.WRAP_TEMPLATE, rows([CKA.EXTRACTABLE, true], [CKA.WRAP_WITH_TRUSTED, false], [CKA.ID, Buffer.of(1)])],
    [CKA.UNWRAP_TEMPLATE, rows([CKA.CLASS, CKO.PRIVATE_KEY], [CKA.KEY_TYPE, CKK.EC], [CKA.TOKEN, true])],
    [
      CKA.DERIVE_TEMPLATE,
      rows([CKA.KEY_TYPE, CKK.HKDF], [CKA.VALUE_LEN, 32], [CKA.SENSITIVE, true], [CKA.SIGN, true], [CKA.DERIVE, false]),
    ],
  ]);
  const rules = rulesOf(attributes);
  expect(rules).toEqual({
    mechanisms: ['hmac-sha256', 'ed25519', 'ed448'],
    wrapWithTrusted: true,
    wraps: { extractable: true, wrapWithTrusted: false, usages: [], noUsages: [] },
    unwraps: {
      ...{ class: 'private-key', algorithms: ['ec', 'secp256k1', 'brainpool'], onToken: true },
      ...{ usages: [], noUsages: [] },
    },
    derives: { algorithms: ['generic'], bits: 256, sensitive: true, usages: ['sign'], noUsages: ['derive'] },
  });
  const head = encodeHead('generateKey', { ...masterKey('k'), rules });
  expect(decodeHead('generateKey', JSON.parse(JSON.stringify(head))).rules).toEqual(rules);
});
