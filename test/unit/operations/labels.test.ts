// Labels as people see them: text in audit records, in key migrations, in events for a SIEM and in
// search, also with the final NUL that a program in C leaves. The signed record keeps the bytes.
import { expect, test } from 'vitest';
import { toOcsf } from '../../../server/adapters/sinks/ocsf.ts';
import type { Grant } from '../../../server/domain/access.ts';
import { auditEntry } from '../../../server/domain/audit-event.ts';
import { representAuditEvent } from '../../../server/fronts/api/represent.ts';
import { administrator, masterKey, openTestService, registerCaller, toLabel } from '../../support/open-service.ts';

const label = 'ORACLE.TDE.HSM.MK.0601A2B3C4D5E6F70819';

test.each([
  ['as text', label, label],
  ['with its final NUL', `${label}\0`, label],
  ['with a NUL in it, which is not text', 'MK\0two', toLabel('MK\0two')],
])('a label %s', async (_, given, shown) => {
  const opened = await openTestService();
  try {
    const { operations } = opened;
    const { caller } = await registerCaller(opened, 'erp');
    await operations.tde.generateKey(caller, masterKey(given));
    const [event] = (await operations.audit.list(administrator, { kind: 'key.created' })).items;
    if (event === undefined) throw new Error('no record of the key');
    expect(representAuditEvent(event).details).toMatchObject({ label: shown });
    expect(toOcsf({ kind: 'record', sequence: event.sequence, text: '', event }, 'log', '1')).toMatchObject({
      unmapped: { label: shown },
    });
    expect((await operations.audit.migrations(administrator, {})).items).toMatchObject([{ label: shown }]);
    expect(auditEntry(event)).toContain(`"label":"${toLabel(given)}"`);
    if (shown !== label) return;
    const grants: readonly Grant[] = [{ role: 'administrator', scope: null, tenantId: null }];
    for (const text of [label, `${label}\0`])
      expect(await operations.search.find(administrator, grants, { text, namesTenant: false })).toMatchObject({
        items: [{ kind: 'key', name: label }],
      });
  } finally {
    await opened.remove();
  }
});
