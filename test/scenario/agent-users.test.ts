// One agent for all users of a host, with the rights that the packages give it: a user of its own
// that may act as others, and may not pass over permissions. One user names everything that might
// stop it or make it open what is not the user's; another user's database continues. Runs as root,
// because it takes several users.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { limits } from '../../provider/agent/settings/limits.ts';
import { CKR, returnValueName } from '../../provider/schema/return-values.ts';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import { type Database, startDatabase } from '../support/database.ts';
import { folderInSystem } from '../support/folders.ts';
import { whyNoOtherUsers } from '../support/other-users.ts';
import { type Site, startSite } from '../support/site.ts';
import { installed } from '../support/tools.ts';

const why = installed('setpriv', 'systemd-socket-activate')
  ? whyNoOtherUsers
  : 'it takes setpriv and systemd-socket-activate to be several users';
if (why !== undefined) console.log(`skipped: ${why}`);
const [agentUser, owner] = [54_400, 54_321];
/** Another one for each way, because each user has a share. */
let attacker = 65_534;
const mostConfigurations = limits.configurations.most;
const pin = 'any';
const zeroIv = '00'.repeat(16);

describe.runIf(why === undefined)('an agent for all users', () => {
  const { path: folder, make, remove } = folderInSystem('users');
  const guests: ChildProcess[] = [];
  let site: Site;
  let agent: AgentProcess;
  let issued: RegisteredApplication;
  let victim: Database;
  let handle: number;
  let config: string;
  let caFile: string;

  const own = (path: string, uid: number): string => {
    chownSync(path, uid, uid);
    return path;
  };
  const folderOf = (uid: number, mode = 0o700): string => {
    const path = own(mkdtempSync(join(folder, 'of-')), uid);
    chmodSync(path, mode);
    return path;
  };
  const tomlOf = (extra = ''): string =>
    `${issued.config.pkcs11_toml.trimEnd()}\nca_file = "${caFile}"\nconnect_timeout_ms = 30000\n${extra}`;
  let files = 0;
  const configOf = (uid: number, extra = '', where = folderOf(uid)): string => {
    const path = join(where, `pkcs11-${++files}.toml`);
    writeFileSync(path, tomlOf(extra), { mode: 0o600 });
    return own(path, uid);
  };

  beforeAll(async () => {
    site = await startSite();
    issued = await registerApplication(site.api, 'erp', await createGroup(site.api, 'finance'));
    make();
    mkdirSync(join(folder, 'log'));
    caFile = join(folder, 'ca.pem');
    copyFileSync(site.server.caFile, caFile);
    chmodSync(caFile, 0o644);
    for (const path of [folder, join(folder, 'log')]) chmodSync(own(path, agentUser), 0o755);
    agent = await startAgent(folder, {
      as: [
        'setpriv',
        `--reuid=${agentUser}`,
        `--regid=${agentUser}`,
        '--clear-groups',
        '--inh-caps=-all,+setuid,+setgid',
        '--ambient-caps=-all,+setuid,+setgid',
        '--bounding-set=-all,+setuid,+setgid',
        '--no-new-privs',
      ],
    });
    config = configOf(owner);
    victim = startDatabase({ config, socket: agent.socket, user: owner });
    expect((await victim.call('open', { pin })).rv).toBe('CKR_OK');
    handle = (await victim.call('generate', { label: '', token: false })).handle ?? 0;
  });
  afterAll(async () => {
    for (const each of guests) each.kill('SIGKILL');
    await victim?.stop();
    await agent?.stop();
    remove();
    await site?.end();
  });

  /** The victim works: with a key of its session, with the service, and from the start. */
  const works = async (): Promise<void> => {
    expect((await victim.call('encrypt', { handle, iv: zeroIv, data: '42'.repeat(32) })).rv).toBe('CKR_OK');
    const { rv, handle: made = 0 } = await victim.call('generate', { label: `KEY-${++files}` });
    expect(rv).toBe('CKR_OK');
    expect((await victim.call('encrypt', { handle: made, iv: zeroIv, data: '42'.repeat(32) })).rv).toBe('CKR_OK');
  };
  const opens = async (path: string, user?: number): Promise<string> => {
    const database = startDatabase({ config: path, socket: agent.socket, ...(user === undefined ? {} : { user }) });
    const { rv } = await database.call('open', { pin });
    await database.stop();
    return rv;
  };
  /**
   * Says hello with each of the lines as the attacker, one after the other; `before` each.
   * Connections stay until the test ends.
   */
  const greet = async (lines: readonly string[], before: (n: number) => void = () => undefined): Promise<string[]> => {
    const child = spawn(process.execPath, [join(import.meta.dirname, '../support/hello-child.ts'), agent.socket], {
      env: { ...process.env, DKE_TEST_USER: String(attacker) },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    guests.push(child);
    const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const said: string[] = [];
    for (const [n, line] of lines.entries()) {
      before(n);
      child.stdin.write(`${line}\n`);
      said.push(returnValueName(Number((await answers.next()).value)));
    }
    return said;
  };
  const leave = (): void => void guests.pop()?.kill('SIGKILL');
  const descriptors = (): readonly string[] => {
    const open = `/proc/${agent.child.pid}/fd`;
    return readdirSync(open).flatMap((fd) => {
      try {
        return [readlinkSync(join(open, fd))];
      } catch {
        return [];
      }
    });
  };
  const resident = (): number =>
    Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${agent.child.pid}/status`, 'utf8'))?.[1]) * 1024;

  test('opens no file for a user that this user cannot open, and says of it what the system would say', async () => {
    const closed = folderOf(0);
    const there = configOf(0, '', closed);
    const missing = join(closed, 'missing.toml');
    expect(await opens(there, attacker)).toBe('CKR_DEVICE_ERROR');
    expect(await opens(missing, attacker)).toBe('CKR_DEVICE_ERROR');
    await expect.poll(() => agent.log()).toContain(`${there}: cannot be read (EACCES)`);
    await expect.poll(() => agent.log()).toContain(`${missing}: cannot be read (EACCES)`);
    // Nor another user's, by whatever way.
    const link = join(folderOf(attacker), 'link.toml');
    symlinkSync(config, link);
    for (const path of [config, link, '/proc/self/environ', `/proc/${agent.child.pid}/environ`])
      expect(await opens(path, attacker)).toBe('CKR_DEVICE_ERROR');
    // Nor what an own pkcs11.toml names.
    const [certificate, key] = [join(closed, 'client.pem'), join(closed, 'client.key')];
    const naming = configOf(attacker, `client_certificate = "${certificate}"\nclient_key = "${key}"\n`);
    expect(await opens(naming, attacker)).toBe('CKR_DEVICE_ERROR');
    await expect
      .poll(() => agent.log())
      .toContain(`${certificate}: cannot be used as client_certificate or client_key (EACCES)`);
    await works();
  });

  test('opens for root what belongs to another user, on behalf of that user: a backup of the database', async () => {
    // In a folder that only its owner may enter, and the agent cannot.
    expect(await opens(config)).toBe('CKR_OK');
    expect(await opens(configOf(owner))).toBe('CKR_OK');
    expect(await opens(configOf(0))).toBe('CKR_OK');
  });

  const ways: Readonly<Record<string, () => Promise<void>>> = {
    'a FIFO as pkcs11.toml': async () => {
      const fifo = join(folderOf(attacker), 'fifo');
      execFileSync('mkfifo', ['-m', '600', fifo]);
      own(fifo, attacker);
      expect(await greet(Array.from({ length: 20 }, () => fifo))).toEqual(Array(20).fill('CKR_DEVICE_ERROR'));
    },
    'a log_dir in which nothing can be made': async () => {
      expect(await greet([configOf(attacker, 'log_dir = "/proc/nope/x"\n')])).toEqual(['CKR_OK']);
    },
    'files of many gigabytes': async () => {
      const huge = join(folderOf(attacker), 'huge');
      writeFileSync(huge, '', { mode: 0o600 });
      truncateSync(own(huge, attacker), 2 ** 36);
      const naming = configOf(attacker).replace(caFile, huge);
      writeFileSync(naming, tomlOf().replace(caFile, huge));
      expect(await greet([huge, naming])).toEqual(['CKR_DEVICE_ERROR', 'CKR_DEVICE_ERROR']);
    },
    'many configurations that stay open': async () => {
      const where = folderOf(attacker);
      const before = resident();
      const said = await greet(Array.from({ length: mostConfigurations + 8 }, () => configOf(attacker, '', where)));
      expect(said.at(0)).toBe('CKR_OK');
      expect(said.at(-1)).toBe(returnValueName(CKR.DEVICE_MEMORY));
      expect(said.filter((each) => each === 'CKR_OK').length).toBeLessThanOrEqual(mostConfigurations);
      expect(resident() - before).toBeLessThan(128 << 20);
    },
    'configurations without end, one after the other': async () => {
      const where = folderOf(attacker);
      const path = join(where, 'pkcs11.toml');
      const before = resident();
      for (let n = 0; n < 4; n++) {
        // Whose processes are gone again.
        await greet(Array.from({ length: 16 }, () => configOf(attacker, '', where)));
        leave();
      }
      expect(readdirSync(where)).toHaveLength(64);
      expect(path).toContain(where);
      expect(resident() - before).toBeLessThan(128 << 20);
    },
    'another log_dir in each hello': async () => {
      const path = configOf(attacker);
      const logs = folderOf(attacker);
      const before = descriptors().filter((each) => each.endsWith('.log')).length;
      const said = await greet(
        Array.from({ length: 40 }, () => path),
        (n) => writeFileSync(path, tomlOf(`log_dir = "${join(logs, String(n))}"\n`)),
      );
      expect(new Set(said)).toEqual(new Set(['CKR_OK']));
      expect(descriptors().filter((each) => each.endsWith('.log')).length).toBe(before);
      // The agent has no business there.
      expect(readdirSync(logs)).toEqual([]);
    },
    'a long pkcs11.toml that changes before each hello': async () => {
      const path = configOf(attacker);
      const said = await greet(
        Array.from({ length: 60 }, () => path),
        (n) => writeFileSync(path, tomlOf(`# ${n} ${'x'.repeat(60_000)}\n`)),
      );
      expect(said.at(0)).toBe('CKR_OK');
      expect(said).toContain('CKR_DEVICE_ERROR');
      await expect.poll(() => agent.log()).toContain(`${path}: cannot be read (the files of uid ${attacker} change`);
    },
    'a large ca_file that changes before each hello': async () => {
      const where = folderOf(attacker);
      const ca = join(where, 'ca.pem');
      const pem = readFileSync(caFile, 'utf8');
      writeFileSync(ca, pem);
      own(ca, attacker);
      const path = configOf(attacker, '', where);
      writeFileSync(path, tomlOf().replace(caFile, ca));
      const said = await greet(
        Array.from({ length: 40 }, () => path),
        (n) => writeFileSync(ca, `${pem.repeat(400)}# ${n}\n`),
      );
      expect(said.at(0)).toBe('CKR_OK');
      expect(said).toContain('CKR_DEVICE_ERROR');
      await expect.poll(() => agent.log()).toContain('change too often');
    },
    'debug lines without end': async () => {
      const path = configOf(attacker, 'log_level = "debug"\nspin_us = 1000\n');
      expect(new Set(await greet(Array.from({ length: 100 }, () => path)))).toEqual(new Set(['CKR_OK']));
    },
  };
  test.each(Object.keys(ways))('continues for others while a user names %s', async (way) => {
    attacker--;
    let over = false;
    const attack = ways[way]?.().finally(() => {
      over = true;
    });
    do await works();
    while (!over);
    await attack;
    await works();
    leave();
  });

  test('writes nowhere but into its own log, whatever log_dir of another user leads to', async () => {
    const logs = folderOf(attacker, 0o777);
    const target = join(folderOf(0), 'target');
    writeFileSync(target, 'as it was\n');
    const name = readdirSync(join(folder, 'log')).find((each) => each.startsWith('agent-')) ?? '';
    for (const each of [name, 'agent-root.log']) symlinkSync(target, join(logs, each));
    const path = configOf(attacker, `log_dir = "${logs}"\n`);
    expect(await opens(path, attacker)).toBe('CKR_OK');
    await expect.poll(() => agent.log()).toContain(path);
    // An agent that runs as root does not write there either.
    const asRoot = join(folder, 'as-root');
    mkdirSync(asRoot, { mode: 0o755 });
    const other = await startAgent(asRoot);
    const database = startDatabase({ config: path, socket: other.socket, user: attacker });
    expect((await database.call('open', { pin })).rv).toBe('CKR_OK');
    await database.stop();
    await expect.poll(() => other.log()).toContain(path);
    expect(await other.stop()).toBe(0);
    expect(readFileSync(target, 'utf8')).toBe('as it was\n');
  });

  test('ends when it is told to', async () => {
    expect(await agent.stop()).toBe(0);
  });
});
