// `npm run mutate [-- WORDS]`: makes each change of test/support/claims.ts in a copy of the tree,
// one at a time, and runs only the test that the claim names. The test must fail by what it says;
// without a change it must pass. A test that only takes too long, or code that does not load, does
// not count. With words: the claims, files or tests that contain one of them. MUTATE_PART=1/2 takes
// the first half of the tests, for two runs side by side. One vitest runs them all: what a change
// leaves as it is was transformed before.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { createVitest, type TestModule, type Vitest } from 'vitest/node';
import { allMutants, type Mutant, testOf } from './claims.ts';

const root = resolve(import.meta.dirname, '../..');
const isNative = ({ file }: Mutant): boolean => /\.(c|cc)$/.test(file);
/** What a run writes belongs to the copy: programs are bundled from its own sources. */
const ownOfCopy = new Set(['programs', 'compile-cache', 'mutants']);

const copyTree = (isBuilt: boolean): string => {
  const copy = mkdtempSync(join(realpathSync(tmpdir()), 'dke-mutants-'));
  const { stdout } = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  for (const file of stdout.split('\0').filter((name) => name !== '')) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file), { verbatimSymlinks: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true, verbatimSymlinks: true });
  if (existsSync(join(root, '.libcrypto'))) symlinkSync(join(root, '.libcrypto'), join(copy, '.libcrypto'));
  if (isBuilt) return copy;
  mkdirSync(join(copy, 'build'));
  for (const entry of readdirSync(join(root, 'build')))
    if (!ownOfCopy.has(entry)) symlinkSync(join(root, 'build', entry), join(copy, 'build', entry));
  return copy;
};

type Verdict = 'passed' | 'failed' | 'too slow' | 'does not load';
interface Outcome {
  readonly verdict: Verdict;
  readonly first: string;
}

/**
 * Without a change, a test may take this long; with one, eight times what it took, and no less than
 * a minute.
 */
const longestRunMs = 20 * 60_000;
const limitOf = (tookMs: number): number => Math.min(longestRunMs, Math.max(60_000, 8 * tookMs));
const isLimit = (text: string): boolean => /timed out|Timed out|did not succeed in time/.test(text);
const firstLine = (text: string): string =>
  stripVTControlCharacters(text).trim().split('\n', 1)[0]?.slice(0, 200) ?? '';

const run = (cwd: string, command: readonly [string, ...string[]]): Outcome => {
  const [program, ...words] = command;
  const limits = { timeout: longestRunMs, maxBuffer: 1 << 28 };
  const { status, stdout, stderr } = spawnSync(program, words, { cwd, encoding: 'utf8', ...limits });
  const text = stripVTControlCharacters(`${stdout}${stderr}`);
  const [first = ''] = /^.*(?:\.cc?:\d+: |\*\*\*Failed|error:).*$/m.exec(text) ?? [text.slice(-200)];
  return { verdict: status === 0 ? 'passed' : status === null ? 'too slow' : 'failed', first: first.trim() };
};
const runNative = (copy: string, mutant: Mutant): Outcome => {
  const built = run(copy, [
    ...(['sh', 'test/support/setup.sh', 'tools', 'cmake-js', 'compile'] as const),
    ...['--target', 'all', '--parallel', '2'],
  ]);
  if (built.verdict !== 'passed') return { verdict: 'does not load', first: built.first };
  const [, name = ''] = /([^/]+)\.cc?$/.exec(mutant.test) ?? [];
  return run(copy, ['ctest', '--test-dir', 'build', '--output-on-failure', '-R', `/${name}$`]);
};

const judge = (modules: readonly TestModule[], unhandled: readonly unknown[]): Outcome => {
  const loading = modules.flatMap((module) => [...module.errors()]);
  const suites = modules.flatMap((module) => [...module.children.allSuites()].flatMap((suite) => [...suite.errors()]));
  const failed = modules.flatMap((module) =>
    [...module.children.allTests('failed')].flatMap((test) => [...(test.result().errors ?? [])]),
  );
  const errors = [...failed, ...suites].map(({ name = '', message, cause }) => ({
    text: firstLine(`${name}: ${message}`),
    // What was polled for never came: vitest says so in the cause.
    isLate: isLimit(message) || isLimit(String((cause as Error | undefined)?.message)),
  }));
  const said = errors.find(({ isLate }) => !isLate);
  if (said !== undefined) return { verdict: 'failed', first: said.text };
  const [late] = errors;
  if (late !== undefined) return { verdict: 'too slow', first: late.text };
  const [broken = unhandled[0]] = loading;
  if (broken !== undefined) return { verdict: 'does not load', first: firstLine((broken as Error).message) };
  const count = modules.flatMap((module) => [...module.children.allTests('passed')]).length;
  return count === 0 ? { verdict: 'does not load', first: 'no test has run' } : { verdict: 'passed', first: '' };
};

/** Tests of one copy, in one vitest; in another one after a test that did not end. */
class Runner {
  readonly #copy: string;
  #vitest: Vitest | undefined;
  #changed = '';
  readonly #env = { ...process.env };

  constructor(copy: string) {
    this.#copy = copy;
  }

  async run(mutant: Mutant, isChanged: boolean, limitMs: number): Promise<Outcome> {
    this.#vitest ??= await this.#start();
    const vitest = this.#vitest;
    const file = join(this.#copy, testOf(mutant));
    // The change before was of another file, which is as it was.
    for (const each of new Set([this.#changed, mutant.file])) vitest.invalidateFile(join(this.#copy, each));
    this.#changed = mutant.file;
    // Tests within one process start no programs: they need no new bundle.
    const isWithin = !isChanged || /^(unit|contract|house)\//.test(mutant.test);
    const specifications = vitest.getModuleSpecifications(file).filter(({ project }) => project.name === 'sqlite');
    if (specifications.length === 0) return { verdict: 'does not load', first: 'no such test in the project' };
    const running = isWithin
      ? vitest.runTestSpecifications(specifications)
      : vitest.rerunTestSpecifications(specifications);
    const { promise: limit, resolve: end } = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => end(undefined), limitMs);
    const result = await Promise.race([running, limit]);
    clearTimeout(timer);
    if (result === undefined) {
      await Promise.race([this.close(), new Promise((done) => setTimeout(done, 30_000))]);
      return { verdict: 'too slow', first: `not done after ${Math.round(limitMs / 1000)} s` };
    }
    return judge(
      result.testModules.filter(({ moduleId }) => moduleId === file),
      result.unhandledErrors,
    );
  }

  async close(): Promise<void> {
    const vitest = this.#vitest;
    this.#vitest = undefined;
    // Its setups name folders that end with it: the next one makes its own.
    process.env = { ...this.#env };
    await vitest?.close();
  }

  async #start(): Promise<Vitest> {
    const vitest = await createVitest('test', {
      ...{ root: this.#copy, config: join(this.#copy, 'vitest.config.ts'), project: ['sqlite'], watch: false, bail: 1 },
      ...{ reporters: [{}], maxWorkers: 1 },
    });
    await vitest.standalone();
    return vitest;
  }
}

const words = process.argv.slice(2);
const [part = 1, parts = 1] = (process.env.MUTATE_PART ?? '1/1').split('/').map(Number);
const tests = [...new Set(allMutants.map(({ test }) => test))];
const chosen = allMutants
  .filter((mutant) => tests.indexOf(mutant.test) % parts === part - 1)
  .filter((mutant) => words.length === 0 || words.some((word) => JSON.stringify(mutant).includes(word)))
  // The sorts are stable, so mutants of one test stay together. Mutants whose tests start programs
  // are last, after them those of native code.
  .sort((a, b) => Number(/^(scenario|conformance)/.test(a.test)) - Number(/^(scenario|conformance)/.test(b.test)))
  .sort((a, b) => Number(isNative(a)) - Number(isNative(b)));
const counts: Record<Verdict, number> = { failed: 0, passed: 0, 'too slow': 0, 'does not load': 0 };
const said: Record<Verdict, string> = {
  ...{ failed: 'died', passed: 'SURVIVED', 'too slow': 'TOO SLOW', 'does not load': 'NOT LOADED' },
};
const survivors: string[] = [];
const tryOne = async (mutant: Mutant, path: string, test: (isChanged: boolean) => Promise<Outcome>): Promise<void> => {
  const { file, line, becomes, claim } = mutant;
  const source = readFileSync(path, 'utf8');
  const begun = Date.now();
  writeFileSync(
    path,
    source.replace(line, () => becomes),
  );
  const { verdict, first } = await test(true);
  writeFileSync(path, source);
  counts[verdict] += 1;
  const took = `${Math.round((Date.now() - begun) / 1000)} s`;
  console.log(`${said[verdict]}: ${claim}: ${file}: ${becomes.trim()}: ${mutant.test}: ${took}: ${first}`);
  if (verdict !== 'failed')
    survivors.push(`${said[verdict]}: ${claim}: ${file}: ${line.trim()} -> ${becomes.trim()}: ${mutant.test}`);
};
for (const native of [false, true]) {
  const some = chosen.filter((mutant) => isNative(mutant) === native);
  if (some.length === 0) continue;
  const copy = copyTree(native);
  const runner = new Runner(copy);
  try {
    const passing = new Map<string, { readonly outcome: Outcome; readonly limitMs: number }>();
    for (const mutant of some) {
      const test = async (isChanged: boolean, limitMs: number): Promise<Outcome> =>
        native && mutant.test.startsWith('native/')
          ? runNative(copy, mutant)
          : await runner.run(mutant, isChanged, limitMs);
      const begun = Date.now();
      const before = passing.get(mutant.test) ?? {
        ...{ outcome: await test(false, longestRunMs), limitMs: limitOf(Date.now() - begun) },
      };
      passing.set(mutant.test, before);
      const { outcome, limitMs } = before;
      if (outcome.verdict === 'passed')
        await tryOne(mutant, join(copy, mutant.file), (isChanged) => test(isChanged, limitMs));
      else survivors.push(`${mutant.claim}: ${mutant.test} fails without a change: ${outcome.first}`);
    }
  } finally {
    await runner.close();
    rmSync(copy, { recursive: true, force: true });
  }
}
console.log(
  `${chosen.length} changes: ${counts.failed} died, ${counts.passed} survived, ${counts['too slow']} took too long, ` +
    `${counts['does not load']} did not load`,
);
for (const each of survivors) console.log(each);
process.exit(survivors.length > 0 ? 1 : 0);
