// Notifications about certificates that clients may not know: each is open while its node serves
// that certificate, whatever the node serves beside it and whatever other nodes serve.
import { beforeEach, expect, test } from 'vitest';
import { serviceTenantId } from '../../../server/base/ids.ts';
import { serviceActor } from '../../../server/domain/actor.ts';
import type { FleetNode } from '../../../server/domain/node.ts';
import { everyTenant } from '../../../server/domain/tenant.ts';
import { certificateSources } from '../../../server/operations/notifications/certificate-sources.ts';
import { createNotificationWatch } from '../../../server/operations/notifications/watch.ts';
import { parseToldCertificates, tellCertificates } from '../../../server/operations/service/told-certificates.ts';
import type { ServedCertificate } from '../../../server/ports/meter.ts';
import type { Store } from '../../../server/ports/store.ts';
import { nodeRow } from '../../support/node-row.ts';
import { storeOfTest } from '../../support/open-store.ts';
import fc from '../../support/property.ts';
import { quietLog } from '../../support/quiet-log.ts';

let time = Date.UTC(2027, 5, 1);
const clock = { now: () => time, monotonic: () => time };
const complaints: unknown[] = [];
const log = { ...quietLog, error: (...all: unknown[]) => void complaints.push(all) };
const [main, xks, others] = ['A', 'B', 'C'].map((letter) => Array(32).fill(`${letter}0`).join(':')) as [
  string,
  string,
  string,
];

let store: Store;
let nodes: readonly Partial<FleetNode>[] = [];
/** What each node serves. */
let served: Record<string, readonly string[]> = {};
let tell: Record<string, ReturnType<typeof tellCertificates>> = {};
const certificatesOf = (node: string): readonly ServedCertificate[] =>
  (served[node] ?? []).map((fingerprint) => ({ fingerprint, names: [fingerprint], beginsAt: time, endsAt: time * 2 }));

beforeEach(async () => {
  store = Object.create(await storeOfTest(clock as never), { link: { value: {}, writable: true } });
  await store.write((tx) => tx.nodes.put(nodeRow('id-two')));
  nodes = ['one', 'two'].map((name) => ({ id: `id-${name}`, name, state: 'active', self: name === 'one' }));
  served = {};
  tell = Object.fromEntries(
    ['one', 'two'].map((name) => [name, tellCertificates({ store, clock }, `id-${name}`, () => certificatesOf(name))]),
  );
  complaints.length = 0;
});
const event = (
  kind: 'tls.certificate-created' | 'tls.issuer-changed',
  node: string,
  fingerprint: string,
  names = 'x',
) =>
  store.write((tx) =>
    tx.audit.append({
      ...{ kind, actor: serviceActor('r'), tenantId: serviceTenantId, subject: { kind: 'service', id: 'service' } },
      details: { node, names, expiresAt: 'later', fingerprint },
    }),
  );
const open = async () => {
  const sources = certificateSources(
    { store, clock, fleet: { nodes: async () => nodes as readonly FleetNode[] } },
    { certificates: () => certificatesOf('one'), certificateFaults: async () => [] },
  );
  const fleet = { perform: <T>(_: unknown, work: () => Promise<T>) => work() };
  await createNotificationWatch({ store, clock, log, fleet }, sources).checkAll();
  const all = await store.read.notifications.listOpen(everyTenant, {}, { limit: 100 });
  return all
    .filter(({ kind }) => kind === 'tls.certificate-created' || kind === 'tls.issuer-changed')
    .map(({ kind, subject }) => `${kind} ${subject.name}`)
    .sort();
};

test('both certificates of a node that have another issuer are announced', async () => {
  await event('tls.issuer-changed', 'one', main, 'keys.example');
  await event('tls.issuer-changed', 'one', xks, 'xks.example');
  served.one = [main, xks];
  expect(await open()).toEqual(['tls.issuer-changed keys.example on one', 'tls.issuer-changed xks.example on one']);
});

test('a self-signed certificate that is still served stays announced when another one of the node changes', async () => {
  served.one = [main, others];
  await event('tls.certificate-created', 'one', main, 'keys.example');
  expect(await open()).toEqual(['tls.certificate-created keys.example on one']);
  served.one = [main, xks];
  await event('tls.issuer-changed', 'one', xks, 'xks.example');
  expect(await open()).toEqual([
    'tls.certificate-created keys.example on one',
    'tls.issuer-changed xks.example on one',
  ]);
});

test('two nodes with one certificate are announced, each until it serves another one', async () => {
  await event('tls.issuer-changed', 'one', main, 'keys.example');
  await event('tls.issuer-changed', 'two', main, 'keys.example');
  served = { one: [main], two: [main] };
  await tell.two?.(true);
  expect([await open(), complaints]).toEqual([
    ['tls.issuer-changed keys.example on one', 'tls.issuer-changed keys.example on two'],
    [],
  ]);
  served.one = [xks];
  expect(await open()).toEqual(['tls.issuer-changed keys.example on two']);
  served.two = [xks];
  await tell.two?.();
  expect(await open()).toEqual([]);
});

test('a certificate that a restart has replaced, without an event, ends the notification', async () => {
  store = Object.create(store, { link: { value: undefined } });
  await event('tls.certificate-created', 'a former name', main);
  expect(await open()).toHaveLength(1);
  served.one = [main];
  expect(await open()).toHaveLength(1);
  served.one = [xks];
  expect(await open()).toEqual([]);
});

test('what a node told before the event, and what no node has told, says nothing about it', async () => {
  served.two = [xks];
  await tell.two?.();
  await event('tls.issuer-changed', 'two', main);
  expect(await open()).toHaveLength(1);
  await store.write((tx) => tx.settings.set('node-certificates id-two', '{"records":9,"fingerprints":["mine"]}'));
  expect(await open()).toHaveLength(1);
  await tell.two?.(true);
  expect(await open()).toEqual([]);
});

test('what a node has told, and a failover has lost, it tells again within a minute', async () => {
  await event('tls.issuer-changed', 'two', main);
  served.two = [main];
  await tell.two?.(true);
  const setting = 'node-certificates id-two';
  const text = await store.read.settings.get(setting);
  served.two = [xks];
  await tell.two?.();
  expect(await open()).toEqual([]);
  await store.write((tx) => tx.settings.set(setting, text ?? null));
  await tell.two?.();
  expect(await open()).toHaveLength(1);
  time += 60_000;
  await tell.two?.();
  expect(await open()).toEqual([]);
});

test('a node that is removed serves nothing; one that is not known may', async () => {
  await event('tls.issuer-changed', 'two', main);
  await event('tls.issuer-changed', 'three', main);
  expect(await open()).toHaveLength(2);
  nodes = nodes.map((node) => ({ ...node, state: 'removed' }));
  expect(await open()).toEqual(['tls.issuer-changed x on three']);
});

test('every certificate of the last 30 days is announced, also where there are more than one page has', async () => {
  const many = Array.from({ length: 60 }, (_, at) => Array(32).fill(String(at).padStart(2, '0')).join(':'));
  for (const each of many) await event('tls.issuer-changed', 'three', each);
  expect(await open()).toHaveLength(60);
  time += 31 * 86_400_000;
  expect(await open()).toEqual([]);
});

test('no text in place of what a node has told is taken for it, unless a node could have told it', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json(), fc.constant(`{"records":1,"fingerprints":["${main}"]}`)), (text) => {
      const told = parseToldCertificates(text);
      if (told === undefined) return;
      expect(Number.isSafeInteger(told.records)).toBe(true);
      for (const each of told.fingerprints) expect(each).toMatch(/^[0-9A-F:]{95}$/);
    }),
  );
  for (const text of ['{', 'null', '[]', '{"records":1}', '{"records":1,"fingerprints":[]}'])
    expect(parseToldCertificates(text), text).toBeUndefined();
});
