// A copy of a data directory: beside the original on one host, and on another host.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { readHostFacts } from '../../../server/adapters/host/host-facts.ts';
import { parseVerifierKey, verifyNote } from '../../../server/base/checkpoint.ts';
import { verifyAuditLog } from '../../../server/cli/verify/audit-export.ts';
import { isSameDirectory, isSameHost } from '../../../server/domain/host.ts';
import { administrator, type OpenedService, openTestService } from '../../support/open-service.ts';
import { onSqlite } from '../../support/test-store.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});
const open = async (options: Parameters<typeof openTestService>[0]): Promise<OpenedService> => {
  const opened = await openTestService(options);
  undo.push(() => opened.stop());
  return opened;
};
const folderOf = (name: string): string => {
  const folder = mkdtempSync(join(tmpdir(), `dke-${name}-`));
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

test.each([
  ['nothing is known of one of them', '', 'machine=a interface=b', true],
  ['all is the same', 'machine=a interface=b', 'machine=a interface=b', true],
  ['one interface stays', 'machine=a interface=b interface=c', 'machine=a interface=c interface=d', true],
  ['another machine id', 'machine=a interface=b', 'machine=e interface=b', false],
  ['no interface stays', 'machine=a interface=b', 'machine=a interface=d', false],
])('hosts are compared by what both know: %s', (_, before, now, same) => {
  expect(isSameHost(before, now)).toBe(same);
});

test.each([
  ['an earlier version has not told it', '', '7 9 machine=a', true],
  ['an earlier version has told the file only', '7 9', '7 9 machine=a', true],
  ['the same of all', '7 9 machine=a interface=b', '7 9 machine=a interface=b', true],
  ['another file, as in a copy of files', '7 9 machine=a', '8 9 machine=a', false],
  ['another host, as with a copy of a disk', '7 9 machine=a interface=b', '7 9 machine=a interface=c', false],
])('a data directory of a node is compared with its copy: %s', (_, before, now, same) => {
  expect(isSameDirectory(before, now)).toBe(same);
});

test('a host says the same of itself each time, and no value that others could use', () => {
  const facts = readHostFacts();
  expect(readHostFacts()).toBe(facts);
  expect(facts).toMatch(/^((machine|interface)=[0-9a-f]{16}( |$))*$/);
});

test.runIf(onSqlite('a copy of the embedded database'))(
  'a data directory that was used on another host is in quarantine, and a restart ends it not; once it is accepted, its log has another name',
  async () => {
    const folder = folderOf('copied');
    const hostFacts = () => 'machine=there';
    const first = await openTestService({ folder, hostFacts: () => 'machine=here' });
    const { origin } = await first.operations.audit.log();
    await first.stop();
    for (let round = 0; round < 2; round += 1) {
      const copy = await open({ folder, hostFacts });
      expect(await copy.operations.quarantine.get(administrator)).toMatchObject({
        ...{ quarantined: true, finding: 'copied' },
        differences: [{ what: 'host', found: 'machine=there', expected: 'machine=here' }],
      });
      await copy.stop();
    }
    const accepted = await open({ folder, hostFacts, acceptDatabase: true });
    expect((await accepted.operations.audit.log()).origin).not.toBe(origin);
    await accepted.stop();
    const next = await open({ folder, hostFacts });
    expect(await next.operations.quarantine.get(administrator)).toMatchObject({ quarantined: false });
  },
);

test.runIf(onSqlite('a copy of the embedded database'))(
  'a copy does not start beside the original; a process that only has the name keeps nothing from starting',
  async () => {
    const first = await open({});
    const folder = folderOf('beside');
    cpSync(first.config.dataDirectory, join(folder, 'dke-data'), { recursive: true });
    chmodSync(join(folder, 'dke-data'), 0o700);
    await expect(openTestService({ folder })).rejects.toThrow('another server of this host runs with a copy');
    await first.stop();

    const value = readFileSync(join(folder, 'dke-data', 'instance'), 'utf8').trim();
    const name = createHash('sha256').update(`dke instance name ${value}`).digest('hex').slice(0, 40);
    const other = createServer((socket) =>
      socket
        .on('error', () => undefined)
        .resume()
        .end('none'),
    );
    await new Promise<void>((resolve) => {
      other.listen(`\0dke-${name}`, resolve);
    });
    undo.push(() => new Promise((resolve) => other.close(() => resolve(undefined))));
    const copy = await open({ folder });
    expect(copy.complaints.map(({ message }) => message)).toContainEqual(
      expect.stringContaining('does not answer; other names are used to notice copies'),
    );
    // Another copy is noticed all the same, also when the name is free again.
    const third = folderOf('third');
    cpSync(join(folder, 'dke-data'), join(third, 'dke-data'), { recursive: true });
    chmodSync(join(third, 'dke-data'), 0o700);
    for (const isTaken of [true, false]) {
      if (!isTaken) await new Promise((resolve) => other.close(resolve));
      await expect(openTestService({ folder: third })).rejects.toThrow('another server of this host runs with a copy');
    }
  },
);

test.runIf(onSqlite('a lock of a data directory'))(
  'a process that hands questions for one name to the service that has another, or stays connected, changes nothing',
  async () => {
    const folder = folderOf('relayed');
    const first = await openTestService({ folder });
    const value = readFileSync(join(first.config.dataDirectory, 'instance'), 'utf8').trim();
    await first.stop();
    const nameOf = (more: string): string =>
      `\0dke-${createHash('sha256').update(`dke instance name ${value}${more}`).digest('hex').slice(0, 40)}`;
    const relay = createServer((socket) => {
      const behind = connect(nameOf(''));
      for (const each of [socket, behind]) each.on('error', () => undefined);
      socket.pipe(behind).pipe(socket);
    });
    await new Promise<void>((resolve) => {
      relay.listen(nameOf(' 1'), resolve);
    });
    undo.push(() => new Promise((resolve) => relay.close(resolve)));
    const second = await openTestService({ folder });
    const staying = connect({ path: nameOf(''), allowHalfOpen: true }).resume();
    staying.on('error', () => undefined).write(Buffer.alloc(32));
    // Its answer has come, and it stays.
    await once(staying, 'end');
    const busy = setInterval(() => staying.write('x'), 100);
    undo.push(() => {
      clearInterval(busy);
      staying.destroy();
    });
    await second.stop();
  },
);

test.runIf(onSqlite('a copy of the embedded database'))(
  'a copy that starts on the same host, in turn with the original, has another log from its first record on, which shows beside a checkpoint of the original',
  async () => {
    const [folder, beside] = [folderOf('in-turn'), folderOf('in-turn-copy')];
    const first = await openTestService({ folder });
    const { size, verifierKey } = await first.operations.audit.log();
    await first.stop();
    cpSync(first.config.dataDirectory, join(beside, 'dke-data'), { recursive: true });
    chmodSync(join(beside, 'dke-data'), 0o700);
    const logs: { readonly lines: readonly string[]; readonly note: string | undefined }[] = [];
    for (const each of [folder, beside]) {
      const opened = await open({ folder: each });
      expect(await opened.operations.quarantine.get(administrator)).toMatchObject({ quarantined: false });
      const lines: string[] = [];
      for await (const page of await opened.operations.audit.export(administrator)) lines.push(...page);
      logs.push({ lines, note: (await opened.operations.audit.checkpoint())?.note });
      await opened.stop();
    }
    const records = logs.map(({ lines }) => lines.filter((line) => line.includes('"sequence":')));
    const [ofOriginal = [], ofCopy = []] = records;
    const started = ofOriginal.findIndex((line, place) => line !== ofCopy[place]);
    expect(started).toBeGreaterThanOrEqual(size);
    // The random id of each start is in the record.
    const starts = [ofOriginal[started], ofCopy[started]].map((line) => JSON.parse(line ?? '{}'));
    expect(starts).toMatchObject([{ kind: 'service.started' }, { kind: 'service.started' }]);
    expect(starts[0].requestId).not.toBe(starts[1].requestId);
    const verifier = parseVerifierKey(verifierKey);
    const [original, copy] = logs;
    const known = verifier === null ? null : verifyNote(original?.note ?? '', verifier);
    if (verifier === null || known === null) throw new Error('the checkpoint is not of this log');
    const check = (lines: readonly string[] = []) =>
      verifyAuditLog(
        (async function* () {
          yield* lines;
        })(),
        verifier,
        [known],
      );
    expect((await check(original?.lines)).findings).toEqual([]);
    expect((await check(copy?.lines)).findings).toEqual([
      expect.stringContaining('are not those that the stored checkpoint signed'),
    ]);
  },
);
