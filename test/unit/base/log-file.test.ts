// The log file of the service and of the agent, on real disks: it is rotated, it is found again
// under its name, and a disk that is full costs no line while there is room for those that wait,
// and never the process.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type LogFailure, type LogFileOptions, openLogFile } from '../../../server/base/log-file.ts';
import { mountSmallDisk, type SmallDisk } from '../../support/small-disk.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-log-file-'));
const disk = mountSmallDisk('1m');
if (typeof disk === 'string') console.log(`skipped: ${disk}`);
const small = disk as SmallDisk;
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  if (typeof disk !== 'string') small.end();
});

const place = (): string => join(mkdtempSync(join(folder, 'place-')), 'dke.log');
const failures: LogFailure[] = [];
const openAt = (path: string, more: Partial<LogFileOptions> = {}) =>
  openLogFile({
    ...{ path, rotateBytes: 1000, rotateMs: Number.POSITIVE_INFINITY, keep: 3 },
    recovered: (failure) => void failures.push(failure),
    ...more,
  });
const lines = (path: string): readonly string[] => readFileSync(path, 'utf8').split('\n').slice(0, -1);
const settled = (path: string, line: string) => expect.poll(() => lines(path).at(-1), { interval: 5 }).toBe(line);

test('is rotated before a line makes it too long, and the oldest files beyond the limit are removed', async () => {
  const path = place();
  writeFileSync(`${path}.gz`, 'another program made this');
  const log = openAt(path);
  for (let n = 0; n < 60; n += 1) {
    const line = `${String(n).padStart(3, '0')}${'x'.repeat(96)}`;
    log.write(`${line}\n`);
    await settled(path, line);
  }
  await log.close();
  const files = readdirSync(join(path, '..')).sort();
  expect(files.filter((name) => /^dke\.log\.\d{8}T\d{6}Z(-\d{4})?$/.test(name))).toHaveLength(3);
  expect(files).toContain('dke.log.gz');
  const kept = files.filter((name) => !name.endsWith('.gz')).map((name) => join(path, '..', name));
  for (const file of kept) expect(statSync(file).size).toBeLessThanOrEqual(1000);
  const numbers = [...kept.slice(1), ...kept.slice(0, 1)].flatMap(lines).map((line) => Number(line.slice(0, 3)));
  expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, at) => 60 - numbers.length + at));
  expect(numbers.length).toBe(40);
});

test('is rotated by age, counted from the time in its first line: also after a restart', async () => {
  const path = place();
  let now = Date.UTC(2026, 0, 1);
  const line = (text: string): string => JSON.stringify({ level: 30, time: new Date(now).toISOString(), msg: text });
  const day = 86_400_000;
  const write = async (text: string) => {
    const log = openAt(path, { rotateMs: 7 * day, now: () => now });
    const one = line(text);
    log.write(`${one}\n`);
    await log.close();
    expect(lines(path).at(-1)).toBe(one);
  };
  await write('first');
  now += 6 * day;
  await write('second');
  expect(lines(path)).toHaveLength(2);
  now += day;
  await write('third');
  expect(lines(path)).toHaveLength(1);
  expect(readdirSync(join(path, '..')).sort()).toEqual(['dke.log', 'dke.log.20260108T000000Z']);
});

test('that another program has moved away is created again under its name', async () => {
  const path = place();
  const log = openAt(path);
  log.write('before\n');
  await settled(path, 'before');
  renameSync(path, `${path}.1`);
  log.write('after\n');
  await expect.poll(() => readdirSync(join(path, '..')).length).toBe(2);
  await settled(path, 'after');
  expect(lines(`${path}.1`)).toEqual(['before']);
  renameSync(path, `${path}.2`);
  log.reopen();
  await expect.poll(() => readdirSync(join(path, '..')).includes('dke.log')).toBe(true);
  await log.close();
});

test.skipIf(typeof disk === 'string')(
  'on a full disk keeps its lines, and writes them when there is room',
  async () => {
    const path = join(small.folder, 'dke.log');
    failures.length = 0;
    const log = openAt(path, { rotateBytes: 1 << 20, keep: 0 });
    log.write('before\n');
    await settled(path, 'before');
    small.fill();
    const long = 'y'.repeat(10_000);
    for (let n = 0; n < 20; n += 1) log.write(`${n} ${long}\n`);
    await expect.poll(() => log.state().failure?.message).toMatch(/ENOSPC/);
    expect(log.state().lost).toBe(0);
    small.free();
    await settled(path, `19 ${long}`);
    expect(lines(path)).toEqual(['before', ...Array.from({ length: 20 }, (_, n) => `${n} ${long}`)]);
    expect(log.state()).toEqual({ lost: 0, failure: null });
    expect(failures).toMatchObject([{ lost: 0 }]);

    // More than may wait.
    small.fill();
    log.write(`${long}\n`);
    await expect.poll(() => log.state().failure).not.toBeNull();
    const many = 1_000;
    for (let n = 0; n < many; n += 1) log.write(`${n} ${long}\n`);
    const { lost } = log.state();
    expect(lost).toBeGreaterThan(100);
    expect(lost).toBeLessThan(many);
    await log.close();
    expect(log.state().lost).toBe(many + 1);
    small.free();
  },
);

test('has what was written last when the process exits, also by a fault', () => {
  const path = place();
  const program = `
    import { openLogFile } from ${JSON.stringify(resolve(import.meta.dirname, '../../../server/base/log-file.ts'))};
    const log = openLogFile({ path: ${JSON.stringify(path)}, rotateBytes: 1e6, rotateMs: Infinity, keep: 1, recovered: () => {} });
    for (let n = 0; n < 100; n += 1) log.write(n + '\\n');
    throw new Error('a fault');
  `;
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
  expect(stderr).toContain('a fault');
  expect(lines(path)).toEqual(Array.from({ length: 100 }, (_, n) => String(n)));
});
