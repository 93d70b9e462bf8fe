// A page of docs/databases as its tests run it: the shell commands that it prints, block by block,
// in one shell session whose variables last, with a service behind `dke` and the built library
// under the names that the page uses.
import {
  appendFileSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { commandPath } from './command.ts';
import { endProcess, processesWith } from './host.ts';
import { patient } from './patience.ts';
import { library } from './pkcs11-host.ts';
import { type Site, startSite } from './site.ts';
import { type Outcome, run } from './tools.ts';

const root = resolve(import.meta.dirname, '../..');

export interface PageRun {
  readonly site: Site;
  /** Where the commands run; removed at the end. */
  readonly folder: string;
  readonly logDirectory: string;
  /** The agents that serve the session. */
  agents(): readonly number[];
  /** The variables of the session, whether it exports them or not. */
  readonly environment: NodeJS.ProcessEnv;
  /**
   * The blocks of the kind under a heading. A heading without one is an error: the page and its
   * test have parted.
   */
  blocks(heading: string, kind?: string): readonly string[];
  /** Runs the commands of a heading, those of its n-th block when a number is given. */
  heading(heading: string, block?: number): Promise<Outcome>;
  /** Runs the commands like `heading` and rejects when they fail; answers what they print. */
  done(heading: string, block?: number): Promise<string>;
  /** Runs commands of the test's own in the session. */
  shell(commands: string): Promise<Outcome>;
  /** Settings that a test host needs in the pkcs11.toml that the page creates. */
  settle(config: string): void;
  end(): Promise<void>;
}

export interface PageOptions {
  readonly variables?: NodeJS.ProcessEnv;
  /** Folders of programs, before those of the tests' own PATH. */
  readonly programs?: readonly string[];
  /** Who types the commands, if not the user of the tests: PostgreSQL does not run as root. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
}

/** Starts a service for the page (`databases/derby`), and a shell session next to it. */
export const openPage = async (
  name: string,
  { variables = {}, programs: folders = [], user }: PageOptions = {},
): Promise<PageRun> => {
  const page = readFileSync(join(root, 'docs', `${name}.md`), 'utf8');
  const site = await startSite();
  // What the session's user needs is its own; the service's folder is not.
  const own = mkdtempSync(join(tmpdir(), 'dke-page-'));
  const [folder, programs, state] = [join(own, 'page'), join(own, 'programs'), join(own, 'session')];
  const [socket, logDirectory, token, caFile] = [
    join(own, 'agent.sock'),
    join(own, 'log'),
    join(own, 'token'),
    join(own, 'ca.crt'),
  ];
  mkdirSync(folder);
  mkdirSync(programs);
  writeFileSync(join(programs, 'dke'), `#!/bin/sh\nexec ${process.execPath} ${commandPath} "$@"\n`, { mode: 0o755 });
  writeFileSync(token, site.token, { mode: 0o600 });
  writeFileSync(state, '', { mode: 0o600 });
  copyFileSync(site.server.caFile, caFile);
  if (user !== undefined) for (const path of [own, folder, token, caFile, state]) chownSync(path, user.uid, user.gid);
  const environment: Record<string, string | undefined> = {
    ...process.env,
    LC_ALL: 'C',
    HOME: own,
    PATH: [programs, ...folders, process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter),
    PKCS11_LIBRARY: library,
    DKE_SERVER: site.server.url,
    DKE_CA_FILE: caFile,
    DKE_TOKEN_FILE: token,
    DKE_PKCS11_SOCKET: socket,
    DKE_AGENT_LOG_DIR: logDirectory,
    ...variables,
  };
  const shell: PageRun['shell'] = (commands) => {
    // Variables last as in one session, and programs get only those that the page exports.
    const keep = `declare -p | grep -v "^declare -[^ ]*r" > ${state}`;
    const script = `set -eu -o pipefail; . ${state}; trap '${keep}' EXIT\n${commands}`;
    return run('bash', ['-c', script], { environment, folder, ...user });
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
  const agents = (): readonly number[] => processesWith(socket).map(([pid]) => pid);
  return {
    site,
    folder,
    get environment() {
      const lines = readFileSync(state, 'utf8').matchAll(/^declare -[-x] (\w+)="((?:[^"\\]|\\.)*)"$/gm);
      return {
        ...environment,
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
      appendFileSync(join(folder, config), patient(`log_dir = ${JSON.stringify(logDirectory)}\n`));
    },
    agents,
    logDirectory,
    async end() {
      for (const pid of agents()) await endProcess(pid);
      await site.end();
      rmSync(own, { recursive: true, force: true });
    },
  };
};
