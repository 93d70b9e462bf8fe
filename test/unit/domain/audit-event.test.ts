// The allow-list of audit fields.
import { expect, test } from 'vitest';
import { auditKinds } from '../../../server/domain/audit-event.ts';

test('no audit record has a field that could hold a credential or a key', () => {
  const suspicious = /secret|token$|accessGuid$|password|plaintext|ciphertext|value|material/i;
  for (const [kind, { fields }] of Object.entries(auditKinds))
    expect(
      fields.filter((field) => suspicious.test(field)),
      kind,
    ).toEqual([]);
});
