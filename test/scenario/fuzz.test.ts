// The libFuzzer targets of test/native/fuzz under AddressSanitizer and UndefinedBehaviorSanitizer:
// a short run of each, from a fixed seed. DKE_FUZZ_RUNS multiplies it (1). Inputs that reach new
// code are stored in build/fuzz/found; those that are worth keeping go into test/native/fuzz/corpus
// by hand, under a name.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join, parse, resolve } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const sources = join(root, 'test/native/fuzz');
const build = join(root, 'build/fuzz');
const times = Number(process.env.DKE_FUZZ_RUNS ?? 1);

/** A few seconds' worth of inputs for each. */
const runs: Readonly<Record<string, number>> = {
  'core-frames': 10_000,
  'core-inputs': 5_000,
  'core-lane': 10_000,
  'core-messages': 10_000,
  'core-next-frame': 50_000,
  'core-part-state': 20_000,
  'core-records': 8_000,
  'core-replay': 50_000,
  'core-threads': 1_000,
  'core-xks-body': 50_000,
  'mariadb-files': 3_000,
  'module-abi': 3_000,
  'module-codec': 50_000,
  'module-settings': 50_000,
};
const targets = readdirSync(sources)
  .filter((name) => /\.cc?$/.test(name))
  .map((name) => parse(name).name);

const hasClang = spawnSync('clang', ['--version']).status === 0;
if (!hasClang) console.log('skipped: clang is not installed');

describe.runIf(hasClang)('no input makes it read or write where it must not, or hang', () => {
  beforeAll(() => {
    mkdirSync(build, { recursive: true });
    const environment = { ...process.env, CC: 'clang', CXX: 'clang++' };
    const run = (...words: string[]) => execFileSync('cmake', words, { cwd: root, env: environment, stdio: 'pipe' });
    const options = ['-DDKE_FUZZ=ON', '-DDKE_TESTS=OFF', '-DDKE_ADDON=OFF', '-DCMAKE_BUILD_TYPE=None'];
    run('-S', root, '-B', build, ...options);
    run('--build', build, '--target', 'fuzzers', '--parallel', '2');
  });

  test.each(targets)('%s', { timeout: 600_000 * times }, (target) => {
    const corpus = join(sources, 'corpus', target);
    // The first folder is the one that the fuzzer writes to.
    const found = join(build, 'found', target);
    mkdirSync(found, { recursive: true });
    const words = [`-runs=${(runs[target] ?? 0) * times}`, '-seed=1', '-max_len=4096', '-len_control=0', '-timeout=20'];
    const ran = spawnSync(join(build, `fuzz-${target}`), [...words, found, ...(existsSync(corpus) ? [corpus] : [])], {
      cwd: build,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    });
    expect(runs[target]).toBeGreaterThan(0);
    // What a sanitizer has to say is at the end.
    expect(`${ran.status ?? ran.signal} ${ran.status === 0 ? '' : ran.stderr.slice(-8000)}`).toBe('0 ');
  });
});
