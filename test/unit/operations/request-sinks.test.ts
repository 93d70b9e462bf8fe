// Forwarding of the request log through the sinks of the audit log: complete and in order, filtered
// by endpoint; and a record that retention removes before a sink has it is counted permanently.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openFileSink } from '../../../server/adapters/sinks/file.ts';
import { toOcsf } from '../../../server/adapters/sinks/ocsf.ts';
import { syslogMessages } from '../../../server/adapters/sinks/syslog.ts';
import { hashEntry, type RequestEntry } from '../../../server/base/request-minutes.ts';
import { createLogForwarding, type LogForwarding } from '../../../server/operations/audit/forward-logs.ts';
import { createRequestRetention } from '../../../server/operations/requests/request-retention.ts';
import type { Forwarded, LogItem, LogSink } from '../../../server/ports/log-sink.ts';
import type { Store } from '../../../server/ports/store.ts';
import type { XksRequestRecord } from '../../../server/ports/xks-directory.ts';
import { deadlinesBy } from '../../support/deadlines.ts';
import { folderOfTest } from '../../support/folders.ts';
import { until } from '../../support/host.ts';
import { openTestStore } from '../../support/open-store.ts';
import { quietLog as log } from '../../support/quiet-log.ts';
import { requestRecord } from '../../support/request-record.ts';

const day = 86_400_000;
const start = Date.UTC(2026, 2, 1, 9, 30);
let now = start;
const clock = { now: () => now, monotonic: () => now };
const fleet = { perform: <T>(_: unknown, work: () => Promise<T>): Promise<T> => work() };

let folder: string;
let store: Store;
const running: LogForwarding[] = [];
beforeEach(async () => {
  now = start;
  folder = folderOfTest();
  store = await openTestStore(folder, clock);
  await store.write((tx) => tx.decisions.set('audit-origin', 'dke/audit/one'));
});
afterEach(async () => {
  for (const each of running.splice(0)) await each.stop(5000);
  await store.close();
});

const give = async (...endpoints: readonly (string | null)[]): Promise<void> => {
  // Durations of real requests are fractions of milliseconds.
  const measured = { durationMs: 1.375, phases: { readMs: 0.5, authMs: 0.25, cryptoMs: 0.125 } };
  const records = endpoints.map((endpointId): XksRequestRecord => ({ ...requestRecord(now), ...measured, endpointId }));
  await store.write((tx) => tx.requests.append(records));
};
const fileSink = (name: string): LogSink =>
  openFileSink({ name, path: join(folder, `${name}.ndjson`), rotateBytes: 1 << 30, keep: 0 });
const requestsTo = (sink: LogSink, ...endpoints: readonly string[]): Forwarded => ({
  sink,
  log: 'requests',
  endpoints,
});
const forward = (...targets: readonly Forwarded[]): LogForwarding => {
  const forwarding = createLogForwarding({ store, clock, log, fleet }, targets, {
    closed: () => undefined,
    doubtsLog: () => false,
  });
  forwarding.start();
  running.push(forwarding);
  return forwarding;
};
const caughtUp = (forwarding: LogForwarding): Promise<true> =>
  until('delivery to every sink', async () =>
    (await forwarding.state()).every(({ lag, failure }) => lag === 0 && failure === null) ? true : undefined,
  );
const linesOf = (name: string): readonly Record<string, unknown>[] =>
  readFileSync(join(folder, `${name}.ndjson`), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test('a sink has every request once and in order, over a restart, and another one those of its endpoints', async () => {
  await give('a', 'b', null, 'a');
  const first = forward(requestsTo(fileSink('all')), requestsTo(fileSink('b'), 'b'));
  await caughtUp(first);
  await first.stop(5000);
  await give('b', 'a');
  const second = forward(requestsTo(fileSink('all')), requestsTo(fileSink('b'), 'b'));
  await caughtUp(second);
  const [head, ...all] = linesOf('all');
  expect(head).toEqual({ log: 'dke/requests/one' });
  expect(all.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(all[0]).toMatchObject({
    at: '2026-03-01T09:30:00.000Z',
    endpointId: 'a',
    requestId: `r-${start}`,
    status: 200,
    durationMs: 1.375,
  });
  // The line is the one whose hash the audit log has.
  const [, line = ''] = readFileSync(join(folder, 'all.ndjson'), 'utf8').split('\n');
  expect(createHash('sha256').update(line).digest()).toEqual(hashEntry(JSON.parse(line) as RequestEntry));
  expect(linesOf('b').map(({ sequence }) => sequence)).toEqual([undefined, 2, 5]);
  expect(await second.state()).toMatchObject([
    { name: 'all', log: 'requests', endpoints: [], forwarded: 6, lag: 0, lost: 0 },
    { name: 'b', log: 'requests', endpoints: ['b'], forwarded: 6, lag: 0, lost: 0 },
  ]);
});

test('what retention removes before a sink has it is counted, of its endpoints only, and over a restart', async () => {
  const away: LogSink = {
    ...{ name: 'away', type: 'https', target: 'away', wholeLogs: false, close: () => Promise.resolve() },
    send: () => Promise.reject(new Error('away')),
  };
  await give('a', 'b', 'a');
  const targets = [requestsTo(away, 'a'), requestsTo(fileSink('all'))];
  const first = forward(...targets);
  await until('the file', async () => ((await first.state())[1]?.lag === 0 ? true : undefined));
  now += 31 * day;
  await give('a');
  const ring = { authenticateRow: (text: string) => createHash('sha256').update(text).digest('hex') };
  const limits = { requestLogDays: 30, requestLogRows: 5000 };
  const retention = createRequestRetention(
    { store, deadlines: deadlinesBy(clock), ring },
    limits,
    first.requestsRemoved,
  );
  await retention.remove(async () => true);
  await first.stop(5000);
  const second = forward(requestsTo(away, 'a'), requestsTo(fileSink('all')));
  await until('the file', async () => ((await second.state())[1]?.lag === 0 ? true : undefined));
  expect(await second.state()).toMatchObject([
    { name: 'away', lost: 2, lostAt: now, forwarded: 0 },
    { name: 'all', lost: 0, lostAt: null, forwarded: 4 },
  ]);
});

test('a request is an OCSF event of the class API Activity, and a syslog message with its own facility', () => {
  const request: XksRequestRecord = {
    ...{ ...requestRecord(start), status: 403, errorName: 'AccessDeniedException', reason: 'rule', peer: '192.0.2.7' },
    principal: 'arn:aws:iam::1:role/x',
  };
  const item: LogItem = { kind: 'request', sequence: 7, request, text: '{"sequence":7}' };
  expect(toOcsf(item, 'dke/requests/one', '1.0.0')).toMatchObject({
    category_uid: 6,
    class_uid: 6003,
    activity_id: 99,
    type_uid: 600_399,
    status_id: 2,
    status_code: 'AccessDeniedException',
    actor: { user: { name: 'arn:aws:iam::1:role/x' } },
    api: { operation: 'encrypt', response: { code: 403 } },
    src_endpoint: { ip: '192.0.2.7' },
    metadata: {
      log_name: 'requests',
      log_provider: 'dke/requests/one',
      uid: expect.stringMatching(/^dke\/requests\/one#7-[0-9a-f]{16}$/),
      correlation_uid: `r-${start}`,
    },
  });
  expect(syslogMessages(item, 'dke/requests/one', 'h', 1)).toEqual([
    `<132>1 2026-03-01T09:30:00.000Z h dke 1 request.encrypt [dke@32473 sequence="7" log="dke/requests/one" endpoint="e" requestId="r-${start}"] {"sequence":7}`,
  ]);
});

test('a record of the audit log has its hash in the tree beside its number', () => {
  const event = {
    ...{ kind: 'vault.created', at: start, actorKind: 'administrator', actorId: 'a', actorName: 'anna', peer: null },
    ...{ tenantId: 't', subjectKind: 'vault', subjectId: 'v', requestId: 'r', details: {} },
  };
  const text = '{"sequence":17}';
  const item = { kind: 'record', sequence: 17, event, text } as unknown as Parameters<typeof syslogMessages>[0];
  const hash = createHash('sha256').update(`\0${text}`).digest('hex');
  expect(syslogMessages(item, 'dke/audit/one', 'h', 1)).toEqual([
    expect.stringContaining(`[dke@32473 sequence="17" log="dke/audit/one" hash="${hash}" actor="anna"`),
  ]);
});

test('a record of any length is syslog messages of at most 8 KiB, each with its part, and together its text', () => {
  const pattern = /^<\d+>1 \S+ h dke 1 request\.encrypt \[dke@32473 [^\]]*sequence="7"[^\]]* part="(\d+) of (\d+)"\] /;
  for (const filler of ['x', 'ü', '\u{1f511}', 'x\u{1f511}'])
    for (const length of [4_000, 8_000, 8_192, 20_000, 100_000]) {
      const text = JSON.stringify({ sequence: 7, rule: filler.repeat(length) });
      const request = { ...requestRecord(start), endpointId: 'e'.repeat(5_000) } as XksRequestRecord;
      const messages = syslogMessages({ kind: 'request', sequence: 7, request, text }, 'dke/requests/one', 'h', 1);
      expect(Math.max(...messages.map((message) => Buffer.byteLength(message)))).toBeLessThanOrEqual(8_192);
      if (messages.length === 1) continue;
      expect(messages.map((message) => pattern.exec(message)?.slice(1))).toEqual(
        messages.map((_, at) => [String(at + 1), String(messages.length)]),
      );
      expect(messages.map((message) => message.replace(pattern, '')).join('')).toBe(text);
    }
});
