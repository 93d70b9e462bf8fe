// The programs that tests start some hundred times a run: server, command and agent, each bundled
// into few files. Node finds and links 1,400 modules one by one, which takes longer than everything
// else that a start does. The modules and their order are those of the sources; what is shipped
// (dist, packages, installed agents) starts in
// test/scenario/{demo,packages,provider-install,server-start}.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'vite';
import type { TestProject } from 'vitest/node';
import { programsVariable } from './program.ts';

const root = resolve(import.meta.dirname, '../..');
const folder = join(root, 'build/programs');

/** Each is in the bundle where it is in the sources. */
const entries = [
  'server/app/process',
  'server/cli/main',
  'server/adapters/store/engine/sqlite/reading-worker',
  'server/adapters/store/engine/sqlite/checkpoint-worker',
  'provider/agent/threads/main',
  'provider/agent/threads/socket-thread',
  'provider/agent/threads/diagnose',
  'provider/agent/threads/load-http',
  'provider/install/command',
];
/**
 * Modules that start or load one of the entries by its place next to them: they find it in the
 * bundle. All others find their files in dist.
 */
const starters = new Set([
  'server/adapters/store/engine/sqlite/worker.ts',
  'server/cli/host/load-provider.ts',
  'provider/agent/threads/main.ts',
]);

const placeModules: Plugin = {
  name: 'place-modules',
  enforce: 'pre',
  transform(code, id) {
    const path = relative(root, id);
    if (path.startsWith('node_modules') || !code.includes('import.meta')) return;
    const place = join(starters.has(path) ? folder : join(root, 'dist'), path.replace(/ts$/, 'js'));
    return code
      .replaceAll('import.meta.dirname', JSON.stringify(dirname(place)))
      .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(place).href));
  },
};

/**
 * Another run may have started the programs that exist: a file is replaced atomically, or stays.
 */
const put = (path: string, content: string): void => {
  if (existsSync(path) && readFileSync(path, 'utf8') === content) return;
  mkdirSync(dirname(path), { recursive: true });
  const fresh = `${path}.${process.pid}`;
  writeFileSync(fresh, content);
  renameSync(fresh, path);
};

/** Once for each state of the programs: the cache contains what their processes compiled. */
const warm = (code: string): void => {
  const cache = process.env.NODE_COMPILE_CACHE;
  if (cache === undefined) return;
  const mark = join(cache, `warm-${createHash('sha256').update(code).digest('hex').slice(0, 32)}`);
  if (existsSync(mark)) return;
  const { status, stderr } = spawnSync(process.execPath, [join(import.meta.dirname, 'warm-programs-child.ts')], {
    env: { ...process.env, [programsVariable]: folder },
    encoding: 'utf8',
  });
  // Without it, the programs only start more slowly.
  if (status === 0) put(mark, '');
  else console.error(`The compile cache was not filled before the tests: ${stderr}`);
};

const bundle = async (): Promise<void> => {
  const built = await build({
    configFile: false,
    root,
    logLevel: 'error',
    plugins: [placeModules],
    ssr: { noExternal: true },
    build: {
      ssr: true,
      write: false,
      target: 'node24',
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries(entries.map((entry) => [entry, join(root, `${entry}.ts`)])),
        output: { entryFileNames: '[name].js', chunkFileNames: 'parts/[name]-[hash].js' },
      },
    },
  });
  // An imported module is before its importers.
  const all: string[] = [];
  for (const { output } of [built].flat() as { readonly output: readonly { fileName: string; code?: string }[] }[])
    for (const { fileName, code } of [...output].sort((a, b) => Number(b.fileName > a.fileName)))
      if (code !== undefined) {
        put(join(folder, fileName), code);
        all.push(code);
      }
  warm(all.join());
};

export default async (project: TestProject): Promise<void> => {
  // One of two projects has done it.
  if (process.env[programsVariable] !== undefined) return;
  await bundle();
  process.env[programsVariable] = folder;
  project.onTestsRerun(bundle);
};
