// Allowed callers of an application: the decisions, their persistence over a restart, and the
// warning before a certificate expires.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { ShownCertificate } from '../../../server/operations/index.ts';
import { makeAuthority } from '../../support/authority.ts';
import { administrator, instance, openTestService, registerCaller } from '../../support/open-service.ts';
import { restart, sharedService } from '../../support/shared.ts';

const toml = '[tls]\nclient_certificates = true\n[erasure]\ngather_ms = 5\n[memory]\nallow_unlocked = true\n';
const opened = sharedService({ toml });

const register = async (name: string) => {
  const { caller, accessGuid } = await registerCaller(opened, name);
  const { id } = caller.application;
  return {
    id,
    set: (callers: { readonly networks?: readonly string[]; readonly certificates?: readonly string[] }) =>
      opened.operations.applications.setCallers(administrator, id, { networks: [], certificates: [], ...callers }),
    /** The reason of a refusal; undefined when the call is allowed. */
    call: async (peer: string | null, certificate?: ShownCertificate): Promise<string | undefined> => {
      try {
        await opened.operations.tde.authenticate({
          ...{ accessGuid, appId: caller.appId, instance, requestId: 'call', peer },
          certificate: () => certificate ?? null,
        });
        return undefined;
      } catch (error) {
        return (error as { readonly reason?: string }).reason;
      }
    },
  };
};

test.each([
  ['10.1.2.3', ['10.1.0.0/16'], undefined],
  ['::ffff:10.1.2.3', ['10.1.0.0/16'], undefined],
  ['10.2.0.1', ['10.1.0.0/16', '10.2.0.1'], undefined],
  ['10.2.0.2', ['10.1.0.0/16', '10.2.0.1'], 'network'],
  ['2001:db8:0:0:0:0:0:42', ['2001:db8::/64'], undefined],
  ['2001:db8:0:1::42', ['2001:db8::/64'], 'network'],
  ['10.1.2.3', ['2001:db8::/64'], 'network'],
  [null, ['0.0.0.0/0', '::/0'], 'network'],
  [null, [], undefined],
])('%s with the allowed networks %j: %s', async (peer, networks, reason) => {
  const { set, call } = await register(`${peer} in ${networks.join(' ') || 'any'}`);
  await set({ networks });
  expect(await call(peer)).toBe(reason);
});

test('a pinned certificate counts while it is valid; a restart keeps it, and a notification comes before it expires', async () => {
  const authority = makeAuthority(opened.folder, 'hosts');
  const soon = new Date(Date.now() + 5 * 86_400_000)
    .toISOString()
    .replaceAll(/[-:]|\.\d+/g, '')
    .replace('T', '');
  const { certificate } = authority.issue({ commonName: 'db1', notAfter: soon });
  const { id, set, call } = await register('pinned');
  const { callers } = await set({ certificates: [readFileSync(certificate, 'utf8')], networks: ['127.0.0.1'] });
  expect(callers.certificates).toHaveLength(1);
  const audited = await opened.operations.audit.list(administrator, {
    kind: 'application.callers-changed',
    subjectId: id,
    limit: 1,
  });
  const [fingerprint = ''] = (audited.items[0]?.details.certificates ?? []) as readonly string[];
  const shown = { fingerprint, beginsAt: 0, endsAt: Date.now() + 1_000_000 };
  const decide = async (): Promise<void> => {
    expect(await call('127.0.0.1', shown)).toBeUndefined();
    expect(await call('127.0.0.1')).toBe('certificate');
    expect(await call('127.0.0.2', shown)).toBe('network');
    expect(await call('127.0.0.1', { ...shown, endsAt: Date.now() - 1 })).toBe('certificate');
    expect(await call('127.0.0.1', { ...shown, beginsAt: Date.now() + 1_000_000 })).toBe('certificate');
    expect(await call('127.0.0.1', { ...shown, fingerprint: fingerprint.replace(/^../, '00') })).toBe('certificate');
  };
  await decide();
  await opened.service.checkNotifications();
  const { items } = await opened.operations.notifications.list(administrator, {});
  expect(items.map(({ kind, subject }) => [kind, subject.name])).toContainEqual([
    'client-certificate.expiring',
    'pinned',
  ]);
  await restart(opened, { toml });
  await decide();
});

test('certificates are refused where the listener does not ask for them', async () => {
  const certificate = readFileSync(
    makeAuthority(opened.folder, 'plain').issue({ commonName: 'db1' }).certificate,
    'utf8',
  );
  const plain = await openTestService();
  try {
    const { caller } = await registerCaller(plain, 'erp');
    await expect(
      plain.operations.applications.setCallers(administrator, caller.application.id, {
        networks: [],
        certificates: [certificate],
      }),
    ).rejects.toMatchObject({ code: 'conflict', hint: expect.stringContaining('tls.client_certificates = true') });
  } finally {
    await plain.remove();
  }
});
