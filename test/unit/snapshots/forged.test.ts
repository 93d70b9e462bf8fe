// A recovery officer who acts alone forges a snapshot: with their own service they create a file
// for another tenant, with an access_guid that they have, sealed to their own recovery key and
// signed by their own service.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { newId } from '../../../server/base/ids.ts';
import { formatRecoveryKey } from '../../../server/base/recovery-key.ts';
import { inTenant } from '../../../server/domain/actor.ts';
import { ApprovalNeeded } from '../../../server/domain/approval.ts';
import type { TdeCaller } from '../../../server/operations/index.ts';
import type { RestoreRequest } from '../../../server/operations/snapshots/snapshots-operations.ts';
import { snapshotFileOf as fileOf, holdOldDatabase, piecesOf as pieces } from '../../support/adversaries.ts';
import { folderOfTest } from '../../support/folders.ts';
import {
  administrator,
  dataObject,
  masterKey,
  type OpenedService,
  openTestService,
  registerCaller,
} from '../../support/open-service.ts';
import { errorOf, waits } from '../../support/people.ts';
import { answerOpening, handOf, handWith, type SnapshotHand } from '../../support/snapshots.ts';
import { queryStored } from '../../support/test-store.ts';

const settings = '[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n';

let forger: OpenedService;
let victim: OpenedService;
let forged: { readonly id: string; readonly file: Buffer; readonly signer: string; readonly accessGuid: string };
let caller: TdeCaller;
let recovery: SnapshotHand['recovery'];
let tenantId: string;
let pages: number;
const cbc = { algorithm: 'aes-cbc', iv: Buffer.alloc(16, 7) } as const;
const opened: OpenedService[] = [];
const open = async (toml: string, folder?: string): Promise<OpenedService> => {
  const made = await openTestService({ toml, ...(folder === undefined ? {} : { folder }) });
  opened.push(made);
  return made;
};

beforeEach(async () => {
  victim = await open(settings);
  tenantId = (await victim.operations.tenants.default()).id;
  ({ caller } = await registerCaller(victim, 'erp'));
  pages = (await victim.operations.tde.generateKey(caller, masterKey('pages'))).handle;
  const hand = await handOf(victim);
  ({ recovery } = hand);
  const genuine = await hand.make(tenantId);

  const { verifierKey } = await victim.operations.audit.log();
  forger = await open(`${settings}[snapshots]\ntrusted_signers = ["${verifierKey}"]\nrestore_second_person = false\n`);
  const theirs = await handOf(forger, hand.recovery);
  await forger.operations.snapshots.import(administrator, pieces(fileOf(victim, genuine)), verifierKey);
  const copy = await theirs.restore(genuine, { newTenant: 'the same tenant' });
  expect(copy.tenantId).toBe(tenantId);
  const actor = { ...administrator, tenantId };
  const issued = await forger.operations.applications.rotateAccessGuid(actor, caller.application.id);
  const id = await theirs.make(tenantId);
  forged = {
    id,
    file: fileOf(forger, id),
    signer: (await forger.operations.audit.log()).verifierKey,
    accessGuid: issued.accessGuid,
  };
});
afterEach(async () => {
  for (const each of opened.splice(0).toReversed()) await each.remove();
});

const login = (service: OpenedService) =>
  service.operations.tde.authenticate({
    accessGuid: forged.accessGuid,
    appId: caller.appId,
    instance: caller.instance,
    requestId: 'r',
    peer: null,
  });

test('its signer is not trusted only because the importing user names it', async () => {
  const { snapshots } = victim.operations;
  expect(await errorOf(snapshots.import(administrator, pieces(forged.file), forged.signer))).toBe('forbidden');
  expect(await errorOf(login(victim))).toBe('unauthenticated');
});

const trusting = async (more: string, signer = forged.signer): Promise<OpenedService> => {
  await victim.stop();
  return open(`${settings}[snapshots]\ntrusted_signers = ["${signer}"]\n${more}`, victim.folder);
};
const restore = async ({ operations: { snapshots } }: OpenedService, request: Partial<RestoreRequest> = {}) =>
  snapshots.restore(
    administrator,
    forged.id,
    answerOpening(await snapshots.beginOpening(administrator, forged.id, recovery.id), recovery.key),
    { tenantId: null, newTenant: null, dryRun: false, ...request },
  );

test('a service that trusts the signer restores it into no tenant that has keys', async () => {
  const service = await trusting('restore_second_person = false\n');
  await service.operations.snapshots.import(administrator, pieces(forged.file), forged.signer);
  expect(await errorOf(restore(service))).toBe('conflict');
  expect(await errorOf(restore(service, { dryRun: true }))).toBe('conflict');
  expect(await errorOf(login(service))).toBe('unauthenticated');
});

test('it opens with a recovery key that is registered, and no other', async () => {
  const service = await trusting('');
  const { snapshots, recoveryKeys } = service.operations;
  await snapshots.import(administrator, pieces(forged.file), forged.signer);
  for (const { id } of await recoveryKeys.list(administrator)) await recoveryKeys.remove(administrator, id, false);
  expect(await errorOf(snapshots.beginOpening(administrator, forged.id, undefined))).toBe('conflict');
});

test('a signer that is no longer trusted is not restored from', async () => {
  const service = await trusting('restore_second_person = false\n');
  await service.operations.snapshots.import(administrator, pieces(forged.file), forged.signer);
  await service.stop();
  const later = await open(`${settings}[snapshots]\nrestore_second_person = false\n`, victim.folder);
  expect(await errorOf(restore(later, { newTenant: 'copy' }))).toBe('forbidden');
});

test('a restore that creates credentials names them and waits for a second person', async () => {
  const service = await open(`${settings}[snapshots]\ntrusted_signers = ["${forged.signer}"]\n`);
  await service.operations.recoveryKeys.register(administrator, {
    name: 'safe',
    publicKey: formatRecoveryKey(recovery.publicKey),
  });
  await service.operations.snapshots.import(administrator, pieces(forged.file), forged.signer);
  const planned = await restore(service, { newTenant: 'moved', dryRun: true });
  expect(planned.activated).toEqual(
    expect.arrayContaining([
      { kind: 'application', change: 'created', id: caller.application.id, name: 'erp' },
      expect.objectContaining({ kind: 'access-guid', change: 'created', name: 'erp' }),
    ]),
  );
  expect(planned.rules).toMatchObject([
    {
      vaultName: 'restores of foreign snapshots, and those that create credentials, end a block or set attributes back',
      required: 1,
    },
  ]);
  await expect(restore(service, { newTenant: 'moved' })).rejects.toBeInstanceOf(ApprovalNeeded);
  expect(await errorOf(login(service))).toBe('unauthenticated');
  const [waiting] = (await service.operations.approvals.list(administrator, { limit: 10 })).items;
  expect(waiting).toMatchObject({ kind: 'snapshot.restore', state: 'pending', missing: 1 });
  // What becomes active is shown by its name to the person who agrees.
  expect(waiting?.impact.activates).toEqual(
    expect.arrayContaining([expect.stringMatching(/^access-guid erp \(created\)/)]),
  );
});

test('what a second person has agreed to is used at once in the new tenant, and after a restart', async () => {
  const toml = `${settings}[snapshots]\ntrusted_signers = ["${forged.signer}"]\n`;
  let service = await open(toml);
  const { operations } = service;
  const here = await operations.tenants.default();
  const { token } = await operations.tokens.create(administrator, 'the service', {
    name: 'anna',
    grants: [{ role: 'key-approver', scope: null, tenantId: here.id }],
  });
  const anna = inTenant((await operations.authenticateAdmin(token, 'request of anna', null)).actor, here.id);
  const hand = await handOf(service, recovery);
  await operations.snapshots.import(administrator, pieces(forged.file), forged.signer);
  const again = () => hand.restore(forged.id, { newTenant: 'moved' });
  const { id } = await waits(again());
  await operations.approvals.approve(anna, id, null);
  // Its own id: what the restore tries out first has the key of a tenant with the same one.
  expect(await again()).toMatchObject({ tenantId, newIds: false });
  const use = async (): Promise<void> => {
    const theirs = await login(service);
    const { handle } = await service.operations.tde.generateKey(theirs, masterKey(newId(Date.now())));
    for (const each of [handle, pages]) {
      const secret = await service.operations.tde.encrypt(theirs, each, cbc, Buffer.alloc(16, 9));
      expect(await service.operations.tde.decrypt(theirs, each, cbc, secret)).toEqual(Buffer.alloc(16, 9));
    }
  };
  await use();
  await service.stop();
  service = await open(toml, service.folder);
  await use();
});

test('what was disabled while a restore was tried out is not brought back without a second person', async () => {
  const { applications, snapshots } = victim.operations;
  const actor = { ...administrator, tenantId };
  const { id } = await snapshots.create(administrator, tenantId);
  // Later each time, until the restore is over before: the unit of work of one of them comes
  // between the one that tries the restore out and the one that carries it out.
  let isOver = false;
  for (let turns = 16; !isOver; turns = Math.ceil(turns * 1.5)) {
    const answer = answerOpening(await snapshots.beginOpening(administrator, id, recovery.id), recovery.key);
    const outcome = snapshots
      .restore(administrator, id, answer, { tenantId: null, newTenant: null, dryRun: false })
      .then(
        ({ activated }) => activated.map(({ kind, change }) => `${kind} ${change}`),
        (error: { readonly code?: string }) => error.code ?? error.constructor.name,
      );
    let isDone = false;
    const settled = outcome.finally(() => {
      isDone = true;
    });
    for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
    isOver = isDone;
    await applications.disable(actor, caller.application.id);
    expect([[], 'conflict', 'ApprovalNeeded']).toContainEqual(await settled);
    expect((await applications.get(actor, caller.application.id)).state).toBe('disabled');
    const [waiting] = (await victim.operations.approvals.list(administrator, { state: 'pending', limit: 1 })).items;
    if (waiting !== undefined) await victim.operations.approvals.withdraw(administrator, waiting.id);
    await applications.enable(actor, caller.application.id);
  }
});

test('a key that signed the log before signs no snapshot of this service, and one that the log names is its own permanently', async () => {
  const { snapshots, audit } = victim.operations;
  const genuine = (await snapshots.create(administrator, tenantId)).id;
  const genuineFile = fileOf(victim, genuine);
  const former = (await audit.log()).verifierKey;
  const old = await holdOldDatabase(victim, join(folderOfTest(), 'old'), { toml: settings });
  opened.push(old);
  let service = victim;
  const { accessGuid } = await old.operations.applications.rotateAccessGuid(
    { ...administrator, tenantId },
    caller.application.id,
  );
  const theirs = (await old.operations.snapshots.create(administrator, tenantId)).id;
  forged = { ...forged, id: theirs, file: fileOf(old, theirs), accessGuid };
  const take = (from: OpenedService, file: Buffer) =>
    from.operations.snapshots.import(administrator, pieces(file), former);
  expect(await errorOf(take(service, forged.file))).toBe('forbidden');
  expect(await errorOf(login(service))).toBe('unauthenticated');

  // Its own is in the log, whichever key has signed it.
  await service.stop();
  rmSync(join(service.config.snapshots.directory, `${genuine}.dkesnap`));
  service = await open(`${settings}[snapshots]\nrestore_second_person = false\n`, victim.folder);
  expect((await take(service, genuineFile)).id).toBe(genuine);
  const answer = answerOpening(
    await service.operations.snapshots.beginOpening(administrator, genuine, recovery.id),
    recovery.key,
  );
  const into = { tenantId: null, newTenant: null, dryRun: true };
  expect(await service.operations.snapshots.restore(administrator, genuine, answer, into)).toMatchObject({
    tenantId,
  });

  // Where dke.toml names the former key, the file is another service's all the same.
  await service.stop();
  service = await trusting('restore_second_person = false\n', former);
  await take(service, forged.file);
  expect(await errorOf(restore(service))).toBe('conflict');
  expect(await errorOf(login(service))).toBe('unauthenticated');
});

test('a destruction that the file says to be later than the restore moves no erasure run ahead', async () => {
  const theirs = await login(forger);
  const objects = [
    await forger.operations.tde.generateKey(theirs, masterKey('later')),
    await forger.operations.tde.createObject(theirs, dataObject('later'), Buffer.from('value')),
  ];
  const ahead = 1_000_000_000;
  const { now } = Date;
  try {
    Date.now = () => now() + ahead;
    for (const { handle } of objects) await forger.operations.tde.destroyObject(theirs, handle);
  } finally {
    Date.now = now;
  }
  const later = await handWith(forger, recovery).make(tenantId);
  const service = await open(
    `${settings}[snapshots]\ntrusted_signers = ["${forged.signer}"]\nrestore_second_person = false\n`,
  );
  const hand = await handOf(service, recovery);
  await service.operations.snapshots.import(administrator, pieces(fileOf(forger, later)), forged.signer);
  await hand.restore(later, { newTenant: 'moved' });
  for (const table of ['keys', 'tde_objects'])
    for (const { id } of objects)
      for (const row of await queryStored(service.folder, `select destroyed_at as at from ${table} where id = ?`, id))
        expect(Number(row.at)).toBeLessThan(now() + ahead / 2);
});
