// `npm run mutate [-- WORDS]`: makes each change of test/support/claims.ts in a copy of the tree, one at a time, and runs only the test
// that the claim names. The test must fail; without a change it must pass. With words: the claims, files or tests that contain one of them.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { allMutants, type Mutant, testOf } from './claims.ts';
import { programsVariable } from './program.ts';

const root = resolve(import.meta.dirname, '../..');
const isNative = ({ file }: Mutant): boolean => /\.(c|cc)$/.test(file);
/** What a run writes belongs to the copy: programs are bundled from its own sources. */
const ownOfCopy = new Set(['programs', 'compile-cache', 'mutants']);

const copyTree = (isBuilt: boolean): string => {
  const copy = mkdtempSync(join(tmpdir(), 'dke-mutants-'));
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

interface Outcome {
  readonly passed: boolean;
  readonly first: string;
}
const run = (cwd: string, command: readonly [string, ...string[]], env: NodeJS.ProcessEnv = process.env): Outcome => {
  const [program, ...words] = command;
  // A change may make its test wait forever: what did not pass in this time has failed.
  const limits = { timeout: 20 * 60_000, maxBuffer: 1 << 28 };
  const { status, stdout, stderr } = spawnSync(program, words, { cwd, env, encoding: 'utf8', ...limits });
  const text = stripVTControlCharacters(`${stdout}${stderr}`);
  const [first = ''] = /^.*(?:FAIL |\*\*\*Failed|error:).*$/m.exec(text) ?? [text.slice(-200)];
  return { passed: status === 0, first: first.trim() };
};
const compile = (copy: string): Outcome =>
  run(copy, ['sh', 'test/support/setup.sh', 'tools', 'cmake-js', 'compile', '--target', 'all', '--parallel', '2']);
const runTest = (copy: string, mutant: Mutant): Outcome => {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const bundled = join(root, 'build/programs');
  // Tests within one process start no programs: they need no new bundle.
  const isWithin = /^(unit|contract|house)\//.test(mutant.test) && existsSync(bundled);
  const env = isWithin ? { ...process.env, [programsVariable]: bundled } : process.env;
  if (isNative(mutant)) {
    const built = compile(copy);
    if (!built.passed) return built;
  }
  if (!mutant.test.startsWith('native/'))
    return run(copy, [process.execPath, vitest, 'run', '--project', 'sqlite', '--bail', '1', testOf(mutant)], env);
  const [, name = ''] = /([^/]+)\.cc?$/.exec(mutant.test) ?? [];
  return run(copy, ['ctest', '--test-dir', 'build', '--output-on-failure', '-R', `/${name}$`]);
};

const words = process.argv.slice(2);
const chosen = allMutants.filter(
  (mutant) => words.length === 0 || words.some((word) => JSON.stringify(mutant).includes(word)),
);
const counts = { died: 0, survived: 0 };
const survivors: string[] = [];
for (const native of [false, true]) {
  const some = chosen.filter((mutant) => isNative(mutant) === native);
  if (some.length === 0) continue;
  const copy = copyTree(native);
  try {
    const passing = new Map<string, Outcome>();
    for (const mutant of some) {
      const { file, line, becomes, claim, test } = mutant;
      const before = passing.get(test) ?? runTest(copy, mutant);
      passing.set(test, before);
      if (!before.passed) {
        survivors.push(`${claim}: ${test} fails without a change: ${before.first}`);
        continue;
      }
      const path = join(copy, file);
      const source = readFileSync(path, 'utf8');
      writeFileSync(
        path,
        source.replace(line, () => becomes),
      );
      const { passed, first } = runTest(copy, mutant);
      writeFileSync(path, source);
      counts[passed ? 'survived' : 'died'] += 1;
      console.log(`${passed ? 'SURVIVED' : 'died'}: ${claim}: ${file}: ${becomes.trim()}: ${first}`);
      if (passed) survivors.push(`${claim}: ${file}: ${line.trim()} -> ${becomes.trim()}: ${test} passes`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
console.log(`${chosen.length} changes: ${counts.died} died, ${counts.survived} survived`);
for (const each of survivors) console.log(each);
if (survivors.length > 0) process.exitCode = 1;
