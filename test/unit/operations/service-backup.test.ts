// A backup of the whole service, opened in this process: nothing of its keys stays in memory.
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { backUpRootKey } from '../../../server/app/offline.ts';
import { createBackup, verifyBackup } from '../../../server/app/service-backup.ts';
import { openBackupKey } from '../../../server/snapshots/backup-file.ts';
import { administrator, type OpenedService, openTestService } from '../../support/open-service.ts';
import { handOf } from '../../support/snapshots.ts';
import { onSqlite } from '../../support/test-store.ts';

let opened: OpenedService;
afterEach(() => opened?.remove());
const ask = () => Promise.resolve(Buffer.from('a passphrase of the root key'));

test.runIf(onSqlite('a backup of its database file'))(
  'a backup that was verified with its root key leaves no key in memory',
  async () => {
    opened = await openTestService();
    const { config, folder } = opened;
    const { recovery } = await handOf(opened);
    await opened.operations.tenants.create(administrator, { name: 'second' });
    const [backup, rootBackup] = [join(folder, 'service.backup'), join(folder, 'root.backup')];
    await createBackup(config, '1.0.0', backup);
    await backUpRootKey(config, rootBackup, ask);
    await opened.stop();
    const before = core.memoryStatus().keys;
    const openKey: Parameters<typeof verifyBackup>[2] = async (own, preface) =>
      openBackupKey(own, preface, recovery.id, recovery.key);
    const report = await verifyBackup(config, backup, openKey, { rootBackup, ask });
    expect(report).toMatchObject({ depth: 'keys', findings: [] });
    expect(core.memoryStatus().keys).toBe(before);
  },
);
