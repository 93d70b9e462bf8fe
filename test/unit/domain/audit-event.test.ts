// The allow-list of audit fields.
import { expect, test } from 'vitest';
import { auditKinds } from '../../../server/domain/audit-event.ts';

test('no audit record has a field that could hold a credential or a key', () => {
  const suspicious = /secret|token$|accessGuid$|password|plaintext|ciphertext|value|material/i;
  // Which objects were copied without one.
  const allowed = ['withoutValue'];
  for (const [kind, { fields }] of Object.entries(auditKinds))
    expect(
      fields.filter((field) => suspicious.test(field) && !allowed.includes(field)),
      kind,
    ).toEqual([]);
});
