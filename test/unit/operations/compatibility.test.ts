// The compatibility switches of an application: the audit log has each change with its actor, and a
// restart keeps them.
import { expect, test } from 'vitest';
import { administrator, type OpenedService, registerCaller } from '../../support/open-service.ts';
import { restart, sharedService } from '../../support/shared.ts';

const opened = sharedService();

test('switches are off by default, are set together, and each change is audited once', async () => {
  const { caller, accessGuid } = await registerCaller(opened, 'old programs');
  const { id } = caller.application;
  expect(caller.application.compatibility).toEqual([]);
  const set = (...switches: Parameters<OpenedService['operations']['applications']['setCompatibility']>[2]) =>
    opened.operations.applications.setCompatibility(administrator, id, switches);
  expect((await set('repeated-ivs', 'rsa-pkcs1-encryption', 'repeated-ivs')).compatibility).toEqual([
    'rsa-pkcs1-encryption',
    'repeated-ivs',
  ]);
  await set('rsa-pkcs1-encryption', 'repeated-ivs');
  await set('sha1-signatures', 'repeated-ivs');
  const { items } = await opened.operations.audit.list(administrator, {
    kind: 'application.compatibility-changed',
    order: 'oldest',
    limit: 10,
  });
  expect(items.map(({ subjectId, details }) => [subjectId, details.on, details.off])).toEqual([
    [id, ['rsa-pkcs1-encryption', 'repeated-ivs'], []],
    [id, ['sha1-signatures'], ['rsa-pkcs1-encryption']],
  ]);

  await restart(opened);
  const { application } = await opened.operations.tde.authenticate({
    ...{ accessGuid, appId: caller.appId, instance: caller.instance, requestId: 'next', peer: null },
  });
  expect(application).toMatchObject({ compatibility: ['sha1-signatures', 'repeated-ivs'], integrity: 'ok' });
});
