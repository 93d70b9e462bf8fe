// The modules that a Node process loads, from the hooks of node:module, for rules about when
// modules are loaded.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Loaded {
  readonly packages: ReadonlySet<string>;
  /** Paths of the server's own modules, from `server/` on. */
  readonly files: readonly string[];
}

/** Variables for a process to record, and what it has loaded when it has ended. `folder` exists. */
export const recordModules = (folder: string) => {
  const hooks = join(folder, 'record-modules.mjs');
  writeFileSync(
    hooks,
    `import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { isMainThread } from 'node:worker_threads';
const loaded = [];
registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
if (isMainThread) process.on('exit', () => writeFileSync(\`${join(folder, 'loaded')}.\${process.pid}\`, loaded.join('\\n')));
`,
  );
  return {
    environment: { NODE_OPTIONS: `--import=${hooks}` },
    read: (pid: number | undefined): Loaded => {
      const urls = readFileSync(join(folder, `loaded.${pid}`), 'utf8').split('\n');
      return {
        packages: new Set(urls.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? [])),
        files: urls.flatMap((url) => /\/server\/(.*)$/.exec(url)?.[1] ?? []),
      };
    },
  };
};
