// The policy rows are compared with their set once a minute while the service runs, and what differs is told.
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, expect, test } from 'vitest';
import { parseCheckpoint } from '../../../server/base/checkpoint.ts';
import { systemClock } from '../../../server/base/clock.ts';
import { createAuditSealer, type Unsound } from '../../../server/operations/audit/seal-audit-log.ts';
import { newTenant } from '../../../server/operations/tenants/create-tenant.ts';
import { openStore } from '../../../server/store/store.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-compared-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('an old row that is put back is found within a minute, and the row is named', async () => {
  let now = 0;
  const clock = { ...systemClock, monotonic: () => now };
  const path = join(folder, 'dke.db');
  const store = await openStore({
    path,
    clock,
    authenticateRow: (text) => createHmac('sha256', 'row key').update(text).digest('hex'),
    onFatal: (error) => {
      throw error;
    },
  });
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const published = Buffer.from(String(publicKey.export({ format: 'jwk' }).x), 'base64url');
  let anchor: string | undefined;
  const found: Unsound[] = [];
  const errors: unknown[] = [];
  const log = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: (...all: unknown[]) => errors.push(all),
  };
  const sealer = createAuditSealer({
    store,
    ring: {
      auditPublicKey: () => published,
      refreshAuditKey: () => Promise.resolve(),
      auditKeys: () => [{ publicKey: published, until: null }],
      signAudit: (text: string) => sign(null, Buffer.from(text), privateKey),
    } as unknown as Parameters<typeof createAuditSealer>[0]['ring'],
    root: {
      anchor: {
        read: () => anchor,
        write: (note: string) => {
          anchor = note;
        },
      },
    } as unknown as Parameters<typeof createAuditSealer>[0]['root'],
    clock,
    log: log as unknown as Parameters<typeof createAuditSealer>[0]['log'],
    perform: (work) => work(),
    onChanged: (finding) => found.push(finding),
  });
  try {
    expect(await sealer.inspect()).toEqual({ state: 'sound' });
    const tenant = newTenant('default', 1);
    await store.write(async (tx) => {
      await tx.tenants.insert(tenant);
      await tx.audit.append({
        kind: 'tenant.created',
        actor: { kind: 'service', id: 'test', name: 'test', requestId: 'r', peer: null },
        tenantId: tenant.id,
        subject: { kind: 'tenant', id: tenant.id },
        details: { name: tenant.name },
      });
    });
    const database = new DatabaseSync(path);
    const older = database.prepare('select state, row_mac, row_version from tenants').get();
    await store.write(async (tx) => {
      await tx.tenants.get(tenant.id);
      await tx.tenants.update({ ...tenant, state: 'suspended' });
    });
    await sealer.checkpoint();
    expect(parseCheckpoint(anchor ?? '')?.rows?.version).toBe(2);

    now += 61_000;
    await sealer.turn();
    await store.snapshot(() => Promise.resolve());
    expect(found).toEqual([]);

    database.prepare('update tenants set state = ?, row_mac = ?, row_version = ?').run(...Object.values(older ?? {}));
    database.close();
    await expect
      .poll(async () => {
        now += 61_000;
        await sealer.turn();
        return found;
      })
      .toEqual([{ state: 'rows-changed', size: 1, older: [`tenants ${tenant.id}`] }]);
    // Nothing is signed any more.
    const signed = anchor;
    await sealer.turn();
    expect(anchor).toBe(signed);
  } finally {
    await store.close();
  }
});
