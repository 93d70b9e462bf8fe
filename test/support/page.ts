// A page of docs/databases as its tests run it: the shell commands that it prints, block by block, in one shell session whose
// variables last, with a service behind `dke` and the built library under the names that the page uses.
import { appendFileSync, chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { commandPath } from './command.ts';
import { library } from './pkcs11-host.ts';
import { type Site, startSite } from './site.ts';
import { type Outcome, run } from './tools.ts';

const root = resolve(import.meta.dirname, '../..');

export interface PageRun {
  readonly site: Site;
  /** Where the commands run; removed with the site. */
  readonly folder: string;
  /** Everything that the session's variables are now. */
  readonly environment: NodeJS.ProcessEnv;
  /** The blocks of the kind under a heading. A heading without one is an error: the page and its test have parted. */
  blocks(heading: string, kind?: string): readonly string[];
  /** Runs the commands of a heading, those of its n-th block when a number is given. */
  heading(heading: string, block?: number): Promise<Outcome>;
  /** The same, and fails when they fail; answers what they print. */
  done(heading: string, block?: number): Promise<string>;
  /** Runs commands of the test's own in the session. */
  shell(commands: string): Promise<Outcome>;
  /** Settings that a test host needs in a pkcs11.toml which the page has made. */
  settle(config: string): void;
  end(): Promise<void>;
}

/** Starts a service for the page (`databases/derby`), and a shell session beside it. */
export const openPage = async (name: string, variables: NodeJS.ProcessEnv = {}): Promise<PageRun> => {
  const page = readFileSync(join(root, 'docs', `${name}.md`), 'utf8');
  const site = await startSite();
  const folder = join(site.folder, 'page');
  const programs = join(site.folder, 'programs');
  const state = join(site.folder, 'session');
  mkdirSync(folder);
  mkdirSync(programs);
  writeFileSync(join(programs, 'dke'), `#!/bin/sh\nexec ${process.execPath} ${commandPath} "$@"\n`, { mode: 0o755 });
  writeFileSync(join(site.folder, 'token'), site.token, { mode: 0o600 });
  // Not the last word of the test's own environment on any of these.
  const own: Record<string, string | undefined> = {
    ...process.env,
    LC_ALL: 'C',
    PATH: [programs, process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter),
    PKCS11_LIBRARY: library,
    DKE_SERVER: site.server.url,
    DKE_CA_FILE: site.server.caFile,
    DKE_TOKEN_FILE: join(site.folder, 'token'),
    DKE_PKCS11_SOCKET: site.socket,
    DKE_AGENT_LOG_DIR: site.logDirectory,
    ...variables,
  };
  writeFileSync(state, '');
  chmodSync(state, 0o600);
  const shell: PageRun['shell'] = (commands) => {
    const script = `set -eu -o pipefail; . ${state}; set -a; trap 'export -p > ${state}' EXIT\n${commands}`;
    return run('bash', ['-c', script], { environment: own, folder });
  };
  const blocks: PageRun['blocks'] = (heading, kind = 'sh') => {
    const [, section] = page.split(`\n## ${heading}\n`);
    if (section === undefined) throw new Error(`docs/${name}.md has no heading "${heading}"`);
    const [text = ''] = section.split('\n## ');
    const found = [...text.matchAll(new RegExp(`^\`\`\`${kind}\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
      ([, block = '']) => block,
    );
    if (found.length === 0) throw new Error(`docs/${name}.md has no ${kind} under "${heading}"`);
    return found;
  };
  const heading: PageRun['heading'] = (title, block) => {
    const all = blocks(title);
    const [wanted] = block === undefined ? [all.join('\n')] : all.slice(block, block + 1);
    if (wanted === undefined) throw new Error(`docs/${name}.md has no block ${block} under "${title}"`);
    return shell(wanted);
  };
  return {
    site,
    folder,
    get environment() {
      const lines = readFileSync(state, 'utf8').matchAll(/^declare -x (\w+)="((?:[^"\\]|\\.)*)"$/gm);
      return {
        ...own,
        ...Object.fromEntries([...lines].map(([, key, value = '']) => [key, value.replace(/\\(.)/g, '$1')])),
      };
    },
    blocks,
    heading,
    async done(title, block) {
      const { code, out, complaints } = await heading(title, block);
      if (code !== 0) throw new Error(`"${title}" ended with ${code}:\n${out}${complaints}`);
      return out;
    },
    shell,
    settle: (config) => {
      // Databases are looked at here, not the speed of a loaded machine.
      appendFileSync(join(folder, config), `log_dir = ${JSON.stringify(site.logDirectory)}\ncall_timeout_ms = 20000\n`);
    },
    end: () => site.end(),
  };
};
