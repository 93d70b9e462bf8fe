// Disks that hang, outside the data directory. A FIFO takes the place of a file: opening it waits
// until something is at its other end.
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { createDisks, type Disks } from '../../server/app/open/disks.ts';
import { formatRecoveryKey } from '../../server/base/recovery-key.ts';
import { type Site, startSite } from '../support/site.ts';
import { makeRecoveryKey } from '../support/snapshot-files.ts';
import { createXksEndpoint } from '../support/xks-call.ts';
import { callXks, requestMetadata } from '../support/xks-client.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-disks-'));
const place = (name: string): string => join(folder, name);
let disks: Disks | undefined;
let site: Site | undefined;
afterEach(async () => {
  await disks?.close(0);
  await site?.end();
  [disks, site] = [undefined, undefined];
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const hang = (path: string): void => {
  if (existsSync(path)) renameSync(path, `${path}.whole`);
  execFileSync('mkfifo', ['-m', '600', path]);
};
const repair = (path: string): void => {
  rmSync(path);
  if (existsSync(`${path}.whole`)) renameSync(`${path}.whole`, path);
};

test('a call to a disk that hangs ends, those after it are refused, and the disk is used again when it answers', async () => {
  mkdirSync(place('data'));
  const path = place('secret');
  writeFileSync(path, 'secret');
  // Long enough for a process to start on a slow machine.
  disks = createDisks(place('data'), 20_000);
  expect((await disks.files.read(path)).toString()).toBe('secret');
  hang(path);
  const short = createDisks(place('data'), 100);
  try {
    const all = await Promise.allSettled([short.files.read(path), short.files.read(path), short.files.exists(path)]);
    expect(all.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect((all[0] as PromiseRejectedResult).reason.message).toBe(`${folder} did not answer within 0.1 s`);
    // Whatever was asked: a caller hears of the disk, and not of a fault of the service.
    for (const each of all) expect((each as PromiseRejectedResult).reason).toMatchObject({ code: 'unavailable' });
  } finally {
    await short.close(0);
  }
  repair(path);
  expect((await disks.files.read(path)).toString()).toBe('secret');
  expect(await disks.files.exists(path)).toBe(true);
  await disks.files.replace(path, 'other');
  await disks.files.rename(path, place('renamed'));
  await disks.files.remove(place('renamed'));
  expect(await disks.files.exists(place('renamed'))).toBe(false);
  const gone = disks.files.read(path);
  await expect(gone).rejects.toMatchObject({ code: 'ENOENT' });
});

test('a file is read and written piece by piece, and ends with the process of its disk', async () => {
  const path = place('pieces');
  disks = createDisks(place('data'), 20_000);
  const file = await disks.files.open(path, 'wx');
  const whole = Buffer.alloc(20 * 1024 ** 2, 7);
  for (let at = 0; at < whole.length; at += 1 << 20) await file.put(whole.subarray(at, at + (1 << 20)), at);
  await file.sync();
  await file.close();
  const again = await disks.files.open(path, 'r');
  expect([await again.size(), (await again.read(whole.length - 10, 100)).length]).toEqual([whole.length, 10]);
  await again.close();
  expect(readFileSync(path).equals(whole)).toBe(true);
  await expect(disks.files.open(path, 'wx')).rejects.toMatchObject({ code: 'EEXIST' });
  expect(await disks.files.list(folder)).toContain('pieces');
  expect((await disks.files.space(folder)).size).toBeGreaterThan(0);
  await expect(file.read(0, 1)).rejects.toThrow('the file is not open');
});

test('a file of a process that has ended is not taken for one of the next process', async () => {
  const made: ChildProcess[] = [];
  disks = createDisks(place('data'), 20_000, () => {
    const program = join(import.meta.dirname, '../../server/app/open/disk-process.ts');
    const child = fork(program, [], { serialization: 'advanced', stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    made.push(child);
    return child;
  });
  const [one, other] = [place('of-the-first'), place('of-the-next')];
  const before = await disks.files.open(one, 'wx');
  made[0]?.kill('SIGKILL');
  if (made[0]?.exitCode === null) await once(made[0], 'exit');
  const after = await disks.files.open(other, 'wx');
  await expect(before.put(Buffer.from('of another file'), 0)).rejects.toThrow('the file is not open');
  await expect(before.close()).rejects.toThrow('the file is not open');
  await after.put(Buffer.from('own'), 0);
  await after.close();
  expect(readFileSync(other, 'utf8')).toBe('own');
});

test('what a process that was given up says late is not taken for another answer', async () => {
  const made: (EventEmitter & { sent: { id: number }[]; told: ((error: Error | null) => void)[] })[] = [];
  const startProcess = (): ChildProcess => {
    const child = Object.assign(new EventEmitter(), {
      sent: [] as { id: number }[],
      told: [] as ((error: Error | null) => void)[],
      send: (question: { id: number }, told: (error: Error | null) => void) => {
        child.sent.push(question);
        child.told.push(told);
      },
      kill: () => true,
      unref: () => undefined,
      channel: null,
    });
    made.push(child);
    return child as unknown as ChildProcess;
  };
  disks = createDisks(place('data'), 60_000, startProcess);
  const first = disks.files.exists(place('one'));
  const [old] = made;
  old?.emit('exit');
  await expect(first).rejects.toThrow('has ended');
  const second = disks.files.exists(place('two'));
  const [, own] = made;
  old?.emit('message', { id: old.sent[0]?.id, value: true });
  old?.told[0]?.(new Error('late'));
  own?.emit('message', { id: own.sent[0]?.id, value: false });
  expect(await second).toBe(false);
});

test('files of the data directory are used here', async () => {
  mkdirSync(place('own'));
  writeFileSync(place('own/file'), 'here');
  // Nothing could answer so soon from elsewhere.
  disks = createDisks(place('own'), 0);
  expect((await disks.files.read(place('own/file'))).toString()).toBe('here');
});

test('a service uses keys, answers and stops while each disk around it hangs, and continues when they answer', async () => {
  for (const name of ['root', 'snapshots', 'log', 'tls']) mkdirSync(place(name), { mode: 0o700 });
  const [root, mark, sink] = [place('root/root.key'), place('snapshots/folder'), place('log/audit.ndjson')];
  const here = await startSite({
    toml:
      `[root]\npath = "${root}"\n[snapshots]\ndirectory = "${place('snapshots')}"\n` +
      `[audit]\nsinks = [{ name = "file", type = "file", path = "${sink}" }]\n`,
  });
  site = here;
  const endpoint = await createXksEndpoint(here, 'disks');
  const encryptOnce = async (): Promise<number> =>
    (
      await callXks(
        { server: here.server, configuration: endpoint.configuration },
        {
          target: `/keys/${endpoint.endpoint.keyId}/encrypt`,
          body: { requestMetadata: requestMetadata(), plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' },
        },
      )
    ).status;
  await expect.poll(() => readFileSync(sink, 'utf8')).toContain('endpoint.created');
  // Something that another user of the disk left there is removed.
  hang(`${root}.checkpoint.new`);
  hang(mark);
  hang(sink);
  // The export signs a checkpoint, which is kept next to the root key.
  expect((await here.api.send('GET', '/api/audit/export')).status).toBe(200);
  expect((await here.api.send('POST', '/api/snapshots', {})).status).toBe(503);
  await expect.poll(() => existsSync(`${root}.checkpoint`)).toBe(true);
  await expect.poll(() => here.server.log()).toContain('a sink is unreachable');
  for (let at = 0; at < 20; at += 1) expect(await encryptOnce()).toBe(200);
  expect((await here.api.send('GET', '/health')).status).toBe(200);
  for (const path of [mark, sink]) repair(path);
  // More than the process has threads for files.
  const { publicKey } = makeRecoveryKey();
  await here.api.call('POST', '/api/recovery-keys', { name: 'safe', publicKey: formatRecoveryKey(publicKey) });
  await expect.poll(async () => (await here.api.send('POST', '/api/snapshots', {})).status).toBeLessThan(300);
  const { items } = await here.api.call<{ items: { id: string }[] }>('GET', '/api/snapshots');
  const id = items[0]?.id ?? '';
  const file = place(`snapshots/${id}.dkesnap`);
  await expect.poll(() => existsSync(file)).toBe(true);
  hang(file);
  const contents = await Promise.all(
    Array.from({ length: 6 }, () => here.api.send('GET', `/api/snapshots/${id}/file`)),
  );
  // A caller has four at a time.
  const statuses = contents.map(({ status }) => status);
  expect(statuses.filter((status) => status === 503).length).toBeGreaterThanOrEqual(3);
  expect(statuses.filter((status) => status !== 503 && status !== 429)).toEqual([]);
  expect(await encryptOnce()).toBe(200);
  // The data directory is used in those threads, and the root key is on the same disk as the
  // snapshots.
  expect((await here.api.send('GET', '/health/live')).status).toBe(200);
  await here.api.call('POST', '/api/vaults', { name: 'meanwhile' });
  repair(file);
  await here.api.call('POST', '/api/vaults', { name: 'after' });
  await expect.poll(() => readFileSync(sink, 'utf8')).toContain('"after"');
  expect((await here.api.send('GET', '/api/audit/export')).status).toBe(200);
  hang(mark);
  expect(await here.server.stop()).toBe(0);
});
