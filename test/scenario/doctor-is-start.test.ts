// The doctor is the start: one thing after the other is broken, and `dke doctor --config` and the
// start name the same cause. Then what the fix says is done (a printed command is run as it is
// printed), the doctor finds nothing, and the service starts. docs/decisions/0055.
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addReceipt } from '../../server/adapters/roots/receipts.ts';
import { loadConfig } from '../../server/app/config/config.ts';
import { madeOf, receiptPath } from '../../server/app/host/create-backup.ts';
import { diagnoseHost } from '../../server/app/host/host-checks.ts';
import { startServer } from '../../server/app/process.ts';
import type { CheckResult } from '../../server/base/diagnostic-checks.ts';
import { StartError } from '../../server/base/start-error.ts';
import { exitCodes } from '../../server/cli/terminal/exit-codes.ts';
import { type Authority, makeAuthority } from '../support/authority.ts';
import { commandPath, runCommand } from '../support/command.ts';
import { freePort, startDaemon } from '../support/daemon.ts';
import { commandsIn } from '../support/printed-fixes.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log('skipped: files of another owner, which only root can make');
const other = 65_534;
/** Whether another user can run these programs: the folders above may be closed. */
const hasOther =
  isRoot && spawnSync(process.execPath, [commandPath, '--version'], { uid: other, gid: other, cwd: '/' }).status === 0;
if (!hasOther) console.log('skipped: a service of another user, which cannot run these programs');
let base: string;
let used: string;
let others: string;
let authority: Authority;

const quiet = '[log]\ndestination = "log.jsonl"\n';
const server = '[server]\nhost = "127.0.0.1"\nport = 0\n';

interface Place {
  readonly folder: string;
  readonly data: string;
  readonly config: string;
  /** A file in the folder, or in the data directory with `data/`. */
  at(name: string): string;
}
const placeAt = (folder: string): Place => ({
  folder,
  data: join(folder, 'data'),
  config: join(folder, 'dke.toml'),
  at: (name) => join(folder, name),
});
const writeConfig = ({ config }: Place, toml = ''): void =>
  writeFileSync(config, `${server}[data]\ndirectory = "data"\n${/^\[log\]/m.test(toml) ? '' : quiet}${toml}`, {
    mode: 0o600,
  });

/** Starts and stops it in this process. Answers the message of the start that failed. */
const start = async ({ config }: Place): Promise<{ readonly refused?: string; readonly sealed?: true }> => {
  const said: string[] = [];
  try {
    const running = await startServer({ config: loadConfig(config, '/'), say: (line) => said.push(line) });
    await running.stop();
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return { refused: error.message };
  }
  return said.includes('sealed: dke root unseal') ? { sealed: true } : {};
};

const diagnose = ({ config }: Place): Promise<readonly CheckResult[]> =>
  diagnoseHost({ configPath: config, workingDirectory: '/' });
const failures = (results: readonly CheckResult[]): readonly CheckResult[] =>
  results.filter(({ state }) => state === 'failed');

interface Situation {
  readonly what: string;
  /** The check of the list that must fail first. */
  readonly check: string;
  readonly cause: RegExp;
  readonly toml?: string;
  readonly spoil?: (place: Place) => void;
  /** What the fix says, where it is not a command; and that it says so. */
  readonly repair?: readonly [says: RegExp, work: (place: Place) => void];
  /** The test that runs the printed command, if the service does not start at once behind it. */
  readonly elsewhere?: string;
  /** What a printed `dke` command asks of the person who runs it: files and options. */
  readonly given?: (place: Place) => Readonly<Record<'FILE', string>> & { readonly more?: readonly string[] };
  /** The service has not started yet. */
  readonly fresh?: true;
  readonly root?: true;
  /** The service starts, and waits for its root key. */
  readonly seals?: true;
}

const situation = (
  what: string,
  check: string,
  cause: RegExp,
  more: Omit<Situation, 'what' | 'check' | 'cause'>,
): Situation => ({ what, check, cause, ...more });

const flip = (path: string, at: number, mode = 0o600): void => {
  const bytes = readFileSync(path);
  bytes[at] = (bytes[at] ?? 0) ^ 0xff;
  rmSync(path);
  writeFileSync(path, bytes, { mode });
};
const putBack =
  (...names: readonly string[]) =>
  ({ data }: Place): void => {
    for (const name of names) {
      rmSync(join(data, name), { recursive: true, force: true });
      cpSync(join(used, 'data', name), join(data, name), { preserveTimestamps: true });
      chmodSync(join(data, name), name === 'root.key' ? 0o400 : 0o600);
    }
  };
const correct =
  (toml = '') =>
  (place: Place): void =>
    writeConfig(place, toml);
/** `dke root restore` asks for the passphrase of its backup. */
const rootBackup = () => ({ FILE: join(base, 'root-backup'), more: ['--passphrase-file', join(base, 'words')] });
const restoreKey = { given: rootBackup };
const restoreDatabase = [/restore it from a backup|put the database back/, putBack('dke.db')] as const;

const rootKey: readonly Situation[] = [
  situation('root.key is cut to nothing', 'root-key', /root\.key/, {
    spoil: ({ data }) => {
      chmodSync(join(data, 'root.key'), 0o600);
      truncateSync(join(data, 'root.key'), 0);
      chmodSync(join(data, 'root.key'), 0o400);
    },
    ...restoreKey,
  }),
  situation('root.key is cut off in its key', 'root-key', /root\.key/, {
    spoil: ({ data }) => {
      chmodSync(join(data, 'root.key'), 0o600);
      truncateSync(join(data, 'root.key'), 4100);
      chmodSync(join(data, 'root.key'), 0o400);
    },
    ...restoreKey,
  }),
  situation('the head of root.key is flipped', 'root-key', /is not a root key file/, {
    spoil: ({ data }) => flip(join(data, 'root.key'), 0, 0o400),
    ...restoreKey,
  }),
  situation('the key in root.key is flipped', 'root-key', /does not contain a complete root key/, {
    spoil: ({ data }) => {
      const at = readFileSync(join(data, 'root.key')).indexOf(Buffer.from('DKRS')) + 20;
      flip(join(data, 'root.key'), at > 20 ? at : 4096 + 20, 0o400);
    },
    ...restoreKey,
  }),
  situation('root.key is of another service', 'keys', /do not belong together/, {
    spoil: ({ data }) => {
      rmSync(join(data, 'root.key'));
      copyFileSync(join(others, 'data/root.key'), join(data, 'root.key'));
      chmodSync(join(data, 'root.key'), 0o400);
    },
    // Nothing says yet which of both is the wrong one: no command moves the root key away.
    repair: [/move neither before you know which was replaced/, putBack('root.key')],
  }),
  situation('root.key is missing', 'root-key', /root\.key is missing/, {
    spoil: ({ data }) => rmSync(join(data, 'root.key')),
    ...restoreKey,
  }),
  situation('others may read root.key', 'root-key', /mode 444/, {
    spoil: ({ data }) => chmodSync(join(data, 'root.key'), 0o444),
  }),
  situation('root.key is of another owner', 'root-key', /root\.key/, {
    root: true,
    spoil: ({ data }) => chownSync(join(data, 'root.key'), 54_321, 54_321),
  }),
  situation('root.key is a link', 'root-key', /root\.key/, {
    spoil: ({ data, at }) => {
      renameSync(join(data, 'root.key'), at('elsewhere'));
      symlinkSync(at('elsewhere'), join(data, 'root.key'));
    },
    ...restoreKey,
  }),
  situation('providers are declared, and root.key is not wrapped', 'root-key', /is not wrapped yet/, {
    toml: '[[root.providers]]\nname = "medium"\ntype = "file"\npath = "medium.key"\n',
    given: () => ({ FILE: '' }),
  }),
  situation(
    'a declared passphrase file is missing at the first start',
    'root-key',
    /phrase could not be read \(ENOENT\)/,
    {
      fresh: true,
      toml: '[[root.providers]]\nname = "phrase"\ntype = "passphrase"\nfile = "phrase"\n',
      repair: [/phrase/, ({ at }) => writeFileSync(at('phrase'), 'a long passphrase of four words\n', { mode: 0o600 })],
    },
  ),
  situation('the folder of the root key is missing', 'root-folder', /the folder .*vault \(root\.path\) is missing/, {
    fresh: true,
    toml: '[root]\npath = "vault/root.key"\n',
  }),
];

const database: readonly Situation[] = [
  situation('the database is missing', 'database-file', /missing or empty, but its root key/, {
    spoil: ({ data }) => rmSync(join(data, 'dke.db')),
    repair: restoreDatabase,
  }),
  situation('the database was cut to nothing', 'database-file', /missing or empty, but its root key/, {
    spoil: ({ data }) => truncateSync(join(data, 'dke.db'), 0),
    repair: restoreDatabase,
  }),
  situation('the database is cut off', 'database-file', /is cut off/, {
    spoil: ({ data }) => truncateSync(join(data, 'dke.db'), 65_536),
    repair: restoreDatabase,
  }),
  situation('the database is text', 'database-file', /is not a database/, {
    spoil: ({ data }) => writeFileSync(join(data, 'dke.db'), 'no database at all, but some text'.repeat(9)),
    repair: restoreDatabase,
  }),
  situation('pages of the database are damaged', 'database-file', /is damaged/, {
    spoil: ({ data }) => {
      const bytes = readFileSync(join(data, 'dke.db'));
      bytes.fill(0xa5, 4096, 40_960);
      writeFileSync(join(data, 'dke.db'), bytes);
    },
    repair: restoreDatabase,
  }),
  situation('the database is of another program', 'database-file', /belongs to another program/, {
    spoil: ({ data }) => {
      const other = new DatabaseSync(join(data, 'dke.db'));
      other.exec('pragma application_id = 7');
      other.close();
    },
    repair: [/nothing was changed/, putBack('dke.db')],
  }),
  situation('the database is of a newer version', 'database-file', /newer version \(2099-01-future\)/, {
    spoil: ({ data }) => {
      const own = new DatabaseSync(join(data, 'dke.db'));
      own.exec("insert into kysely_migration (name, timestamp) values ('2099-01-future', '2099')");
      own.close();
    },
    repair: [/install that version/, putBack('dke.db')],
  }),
  situation('a restore was cut off', 'database-file', /restore of a backup .* was cut off/, {
    spoil: ({ data }) => {
      rmSync(join(data, 'dke.db'));
      writeFileSync(join(data, 'restore-under-way'), '{"files":[],"folder":null}', { mode: 0o600 });
    },
    // A restored service is in quarantine until an operator confirms it.
    elsewhere: 'test/unit/operations/service-backup.test.ts',
    repair: [
      /repeat it/,
      (place) => {
        rmSync(join(place.data, 'restore-under-way'));
        putBack('dke.db')(place);
      },
    ],
  }),
  situation('the record of a quarantine is torn', 'quarantine', /quarantine, and cannot be read/, {
    spoil: ({ data }) => writeFileSync(join(data, 'quarantine'), '{"find', { mode: 0o600 }),
  }),
];

const files: readonly Situation[] = [
  situation('others may enter the data directory', 'data', /has mode 755: it must have mode 700/, {
    spoil: ({ data }) => chmodSync(data, 0o755),
  }),
  situation('the data directory is of another owner', 'data', /belongs to user 54321/, {
    root: true,
    spoil: ({ data }) => chownSync(data, 54_321, 54_321),
  }),
  situation('the data directory is a file', 'data', /is not a folder/, {
    fresh: true,
    spoil: ({ data }) => writeFileSync(data, ''),
    repair: [/name a folder/, ({ data }) => rmSync(data)],
  }),
  situation('the folder of snapshots is a file', 'snapshots', /is not a folder/, {
    toml: '[snapshots]\ndirectory = "kept"\n',
    spoil: ({ at }) => writeFileSync(at('kept'), ''),
    repair: [/move it away/, ({ at }) => rmSync(at('kept'))],
  }),
  situation('the folder of snapshots is of another owner', 'snapshots', /belongs to user 54321/, {
    root: true,
    toml: '[snapshots]\ndirectory = "kept"\n',
    spoil: ({ at }) => {
      mkdirSync(at('kept'), { mode: 0o700 });
      chownSync(at('kept'), 54_321, 54_321);
    },
  }),
  situation('the folder of the log is missing', 'logs', /the folder .*logs \(log\.destination\) is missing/, {
    toml: '[log]\ndestination = "logs/dke.log"\n',
  }),
  situation('the log is a folder', 'logs', /\(log\.destination\) is a folder/, {
    toml: '[log]\ndestination = "logs"\n',
    spoil: ({ at }) => mkdirSync(at('logs')),
    repair: [/name a file/, correct()],
  }),
  situation('the folder of the access log is missing', 'logs', /\(access_log\.file\) is missing/, {
    toml: '[access_log]\nfile = "logs/access.log"\n',
  }),
  situation('the folder of a file sink is missing', 'named-files', /audit\.sinks, archive: path\) is missing/, {
    toml: '[[audit.sinks]]\nname = "archive"\ntype = "file"\npath = "sinks/audit.jsonl"\n',
  }),
  situation('a name of dke.toml is unknown', 'configuration', /unknown field limits\.speed/, {
    toml: '[limits]\nspeed = 9\n',
    repair: [/remove it or correct its name/, correct()],
  }),
  situation('dke.toml is not TOML', 'configuration', /not TOML at line/, {
    toml: 'this is text\n',
    repair: [/line/, correct()],
  }),
  situation('others may write dke.toml', 'configuration', /has mode 666/, {
    spoil: ({ config }) => chmodSync(config, 0o666),
  }),
  situation('dke.toml is of another owner', 'configuration', /belongs to user 54321/, {
    root: true,
    spoil: ({ config }) => chownSync(config, 54_321, 54_321),
  }),
  situation('others may replace dke.toml in its folder', 'configuration', /could replace files in it/, {
    spoil: ({ folder }) => chmodSync(folder, 0o777),
  }),
];

/**
 * Each file that dke.toml can name: missing, readable by others, and, of authorities, without a
 * certificate.
 */
const named: readonly Situation[] = (
  [
    [
      'oidc.client_secret_file',
      'secret',
      '[oidc]\nissuer = "https://127.0.0.1:9"\nclient_id = "dke"\nclient_secret_file = "named"\n',
    ],
    ['oidc.ca', 'authorities', '[oidc]\nissuer = "https://127.0.0.1:9"\nclient_id = "dke"\nca = "named"\n'],
    ['telemetry.token_file', 'secret', '[telemetry]\nendpoint = "https://127.0.0.1:9"\ntoken_file = "named"\n'],
    ['telemetry.ca', 'authorities', '[telemetry]\nendpoint = "https://127.0.0.1:9"\nca = "named"\n'],
    ['diagnostics.trusted_authorities', 'authorities', '[diagnostics]\ntrusted_authorities = "named"\n'],
    [
      'audit.sinks, collector: token_file',
      'secret',
      '[[audit.sinks]]\nname = "collector"\ntype = "https"\nurl = "https://127.0.0.1:9"\ntoken_file = "named"\n',
    ],
    [
      'audit.sinks, collector: ca',
      'authorities',
      '[[audit.sinks]]\nname = "collector"\ntype = "syslog"\nhost = "127.0.0.1"\nca = "named"\n',
    ],
    [
      'notifications.targets, hook: secret_file',
      'secret',
      '[[notifications.targets]]\nname = "hook"\ntype = "webhook"\nurl = "https://127.0.0.1:9"\nsecret_file = "named"\n',
    ],
    [
      'notifications.targets, mail: password_file',
      'secret',
      '[[notifications.targets]]\nname = "mail"\ntype = "email"\nhost = "127.0.0.1"\nfrom = "a@b.example"\nto = ["a@b.example"]\nuser = "u"\npassword_file = "named"\n',
    ],
  ] as const
).flatMap(([setting, kind, toml]) => {
  const isSecret = kind === 'secret';
  const write = ({ at }: Place): void =>
    writeFileSync(at('named'), isSecret ? 'a secret of sixteen or more bytes\n' : authority.pem, {
      mode: isSecret ? 0o600 : 0o644,
    });
  const says = new RegExp(`put the file there, or correct ${setting.replaceAll('.', '\\.')} in dke\\.toml`);
  return [
    situation(`${setting} is missing`, 'named-files', /named cannot be read \(ENOENT\)/, {
      toml,
      repair: [says, write],
    }),
    isSecret
      ? situation(`others may read ${setting}`, 'named-files', /named has mode 644/, {
          toml,
          spoil: ({ at }) => writeFileSync(at('named'), 'a secret of sixteen or more bytes\n', { mode: 0o644 }),
        })
      : situation(`${setting} has no certificate`, 'named-files', /contains no certificate/, {
          toml,
          spoil: ({ at }) => writeFileSync(at('named'), 'no certificate', { mode: 0o644 }),
          repair: [says, write],
        }),
  ];
});

const tls = '[tls]\ncertificate = "own.crt"\nkey = "own.key"\n';
const issue = ({ at }: Place, name = 'own', from = authority.below('issuing')): void => {
  const { certificate, key } = from.issue({
    commonName: 'keys',
    names: ['IP:127.0.0.1', 'DNS:localhost'],
    usage: 'serverAuth',
  });
  copyFileSync(certificate, at(`${name}.crt`));
  copyFileSync(key, at(`${name}.key`));
  chmodSync(at(`${name}.crt`), 0o644);
  chmodSync(at(`${name}.key`), 0o600);
};
const issued =
  (spoil: (place: Place) => void) =>
  (place: Place): void => {
    issue(place);
    spoil(place);
  };
const replaceTls = (says: RegExp) => [says, (place: Place) => issue(place)] as const;

const certificates: readonly Situation[] = [
  situation('the key of the own certificate is missing', 'certificate', /tls\.key cannot be read \(ENOENT\)/, {
    spoil: ({ data }) => rmSync(join(data, 'tls.key')),
    repair: [/put tls\.crt and tls\.key back from a backup/, putBack('tls.key', 'tls.crt')],
  }),
  situation('the key of the own certificate is of another one', 'certificate', /is damaged, or is not that of/, {
    spoil: ({ data }) => copyFileSync(join(others, 'data/tls.key'), join(data, 'tls.key')),
    repair: [/put the whole one in its place/, putBack('tls.key')],
  }),
  situation('the own certificate was changed', 'certificate', /tls\.crt/, {
    spoil: ({ data }) => {
      const text = readFileSync(join(data, 'tls.crt'), 'utf8').split('\n');
      const line = text[4] ?? '';
      text[4] = `${line.slice(0, 10)}${line[10] === 'A' ? 'B' : 'A'}${line.slice(11)}`;
      writeFileSync(join(data, 'tls.crt'), text.join('\n'));
    },
    repair: [/put the whole one in its place/, putBack('tls.crt')],
  }),
  situation('others may read the key of the own certificate', 'certificate', /tls\.key has mode 644/, {
    spoil: ({ data }) => chmodSync(join(data, 'tls.key'), 0o644),
  }),
  situation('the certificate is missing', 'certificate', /own\.crt cannot be read \(ENOENT\)/, {
    toml: tls,
    spoil: issued(({ at }) => rmSync(at('own.crt'))),
    repair: replaceTls(/put the file there, or correct \[tls\]/),
  }),
  situation('the key of the certificate is missing', 'certificate', /own\.key cannot be read \(ENOENT\)/, {
    toml: tls,
    spoil: issued(({ at }) => rmSync(at('own.key'))),
    repair: replaceTls(/put the file there, or correct \[tls\]/),
  }),
  situation('the certificate is text', 'certificate', /contains no certificate/, {
    toml: tls,
    spoil: issued(({ at }) => writeFileSync(at('own.crt'), 'text', { mode: 0o644 })),
    repair: replaceTls(/check \[tls\]/),
  }),
  situation('the key is text', 'certificate', /own\.key cannot be read/, {
    toml: tls,
    spoil: issued(({ at }) => writeFileSync(at('own.key'), 'text', { mode: 0o600 })),
    repair: replaceTls(/check \[tls\]/),
  }),
  situation('the key is of another certificate', 'certificate', /is damaged, or is not that of/, {
    toml: tls,
    spoil: issued(({ at }) => copyFileSync(join(others, 'data/tls.key'), at('own.key'))),
    repair: replaceTls(/check \[tls\]/),
  }),
  situation('the chain begins with the issuer', 'certificate', /the chain is in the wrong order/, {
    toml: tls,
    spoil: issued(({ at }) => {
      const [own = '', issuer = ''] =
        readFileSync(at('own.crt'), 'utf8').match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n?/g) ?? [];
      writeFileSync(at('own.crt'), `${issuer.trim()}\n${own.trim()}\n`);
    }),
    repair: replaceTls(/put the server's own certificate first/),
  }),
  situation('others may read the key of the certificate', 'certificate', /own\.key has mode 640/, {
    toml: tls,
    spoil: issued(({ at }) => chmodSync(at('own.key'), 0o640)),
  }),
  situation('a further certificate is missing', 'certificate', /more\.crt cannot be read \(ENOENT\)/, {
    toml: '[tls]\nadditional = [{ certificate = "more.crt", key = "more.key" }]\n',
    repair: [/put the file there, or correct \[tls\]/, (place) => issue(place, 'more')],
  }),
];

beforeAll(async () => {
  base = mkdtempSync(join(tmpdir(), 'dke-doctor-start-'));
  chmodSync(base, 0o755);
  authority = makeAuthority(base, 'doctor start');
  const make = async (name: string): Promise<string> => {
    const place = placeAt(join(base, name));
    mkdirSync(place.folder, { mode: 0o755 });
    writeConfig(place);
    expect(await start(place)).toEqual({});
    return place.folder;
  };
  used = await make('used');
  const backUp = async (...args: readonly string[]) =>
    expect(await runCommand([...args, '--config', join(used, 'dke.toml')])).toMatchObject({ code: 0, stderr: '' });
  writeFileSync(join(base, 'words'), 'a long passphrase of four words\n', { mode: 0o600 });
  await backUp('root', 'backup', '--out', join(base, 'root-backup'), '--new-passphrase-file', join(base, 'words'));
  others = await make('others');
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

const runPrinted = async (place: Place, { given }: Situation, text: string) => {
  const { FILE = '', more = [] } = given?.(place) ?? {};
  const [, ...words] = text.split(' ').map((word) => (word === 'FILE' ? FILE : word));
  const { code, stderr } = await runCommand([...words, '--config', place.config, ...more]);
  return { code, stderr };
};

let made = 0;
const prepare = ({ toml, spoil, fresh }: Situation): Place => {
  made += 1;
  const place = placeAt(join(base, `case-${made}`));
  mkdirSync(place.folder, { mode: 0o755 });
  if (fresh === undefined) {
    cpSync(join(used, 'data'), place.data, { recursive: true });
    chmodSync(place.data, 0o700);
    chmodSync(join(place.data, 'root.key'), 0o400);
    // Each is a service of its own: a copy of one that runs does not start.
    rmSync(join(place.data, 'instance'), { force: true });
  }
  writeConfig(place, toml);
  spoil?.(place);
  return place;
};

const tables = {
  'the root key': rootKey,
  'the database': database,
  files,
  'files that dke.toml names': named,
  certificates,
};

console.info(`the doctor and the start are compared in ${Object.values(tables).flat().length} situations of a host`);
/** How many situations ended by the printed command alone. */
let executed = 0;
afterAll(() =>
  console.info(`the printed fix was run in ${executed} situations; others say what to do without a command`),
);
describe.each(Object.entries(tables))('%s', (_name, rows) => {
  test.each(rows.filter(({ root }) => isRoot || root === undefined))('$what', async (row) => {
    const place = prepare(row);
    const [first] = failures(await diagnose(place));
    expect(first).toMatchObject({ id: row.check, evidence: expect.stringMatching(row.cause) });
    const { refused } = await start(place);
    // The start refuses for the same cause, and offers the same fix.
    expect(refused).toContain(first?.evidence);
    const said = `${first?.evidence}${first?.fix === undefined ? '' : `: ${first.fix}`}`;
    expect(refused).toBe(said);
    // A printed command is run, and nothing else is done. A fix without one is done here.
    const printed = row.elsewhere === undefined ? commandsIn(said) : [];
    if (row.elsewhere !== undefined)
      for (const { text } of commandsIn(said)) expect(readFileSync(row.elsewhere, 'utf8')).toContain(text);
    expect([said, printed.length > 0]).toEqual([said, row.repair === undefined]);
    if (printed.length > 0) executed += 1;
    for (const { kind, text } of printed) {
      if (kind === 'shell') execFileSync('sh', ['-c', text], { cwd: '/' });
      else expect(await runPrinted(place, row, text)).toEqual({ code: 0, stderr: '' });
    }
    if (row.repair !== undefined) {
      const [says, work] = row.repair;
      expect(said).toMatch(says);
      work(place);
    }
    expect(failures(await diagnose(place))).toEqual([]);
    expect(await start(place)).toEqual({});
  });
});

test('what the service starts without is a finding of the doctor, and no reason to refuse a start', async () => {
  const port = await freePort();
  const toml =
    `${tls}[oidc]\nissuer = "https://127.0.0.1:${port}"\nclient_id = "dke"\n` +
    `[[audit.sinks]]\nname = "collector"\ntype = "syslog"\nhost = "127.0.0.1"\nport = ${port}\n`;
  const place = prepare(
    situation('', '', /./, {
      toml,
      spoil: issued(({ at }) => {
        const [own = ''] =
          readFileSync(at('own.crt'), 'utf8').match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n?/g) ?? [];
        writeFileSync(at('own.crt'), own);
      }),
    }),
  );
  writeFileSync(
    place.config,
    readFileSync(place.config, 'utf8').replace(server, `${server}public_names = ["nowhere.invalid"]\n`),
  );
  const found = new Map((await diagnose(place)).map((each) => [each.id, each]));
  const warned = (id: string): string => {
    expect(found.get(id)).toMatchObject({ state: 'warning', fix: expect.any(String) });
    return found.get(id)?.evidence ?? '';
  };
  expect(warned('chain')).toContain('its chain is not complete: the certificate of CN=issuing is missing');
  expect(warned('open-id')).toMatch(/https:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/);
  expect(warned('receivers')).toMatch(/audit sink collector, 127\.0\.0\.1:\d+: .*ECONNREFUSED/);
  expect(warned('names')).toContain('nowhere.invalid cannot be resolved');
  expect(warned('dates')).toContain('own.crt is not for nowhere.invalid');
  expect(warned('backup')).toContain('none was made here');
  expect(await start(place)).toEqual({});
  expect(readFileSync(place.at('log.jsonl'), 'utf8')).toContain('its chain is not complete');
});

test('a backup that is too old is a finding, with the command that makes a new one', async () => {
  const place = prepare(situation('', '', /./, { toml: '[notifications]\nbackup_days = 7\n' }));
  const day = 86_400_000;
  // What `dke backup create` leaves.
  const made = (daysAgo: number): void => {
    const at = Date.now() - daysAgo * day - 1_000;
    addReceipt(receiptPath(place.data), { id: `of-${daysAgo}`, at, ...madeOf({ records: 1, rootEpochs: [1] }) });
  };
  const found = async () => (await diagnose(place)).find(({ id }) => id === 'backup');
  made(8);
  expect(await found()).toMatchObject({
    state: 'warning',
    evidence: expect.stringContaining('of the service: 8 days old'),
    fix: expect.stringMatching(/^make one: dke backup create(?:, and dke root backup)?$/),
  });
  expect(await start(place)).toEqual({});
  made(6);
  const after = await found();
  expect(after?.evidence).toContain('of the service: 6 days old');
  expect(after?.fix ?? '').not.toContain('dke backup create');
});

test('dke root add-provider without --config finds the dke.toml of an installed host', () => {
  if (spawnSync('unshare', ['--mount', 'true']).status !== 0) {
    console.info('not asked: this host gives no mount namespace, so that no /etc/dke/dke.toml can be the test’s own');
    return;
  }
  const place = prepare(situation('', '', /./, {}));
  const etc = place.at('etc');
  writeConfig(place, `[[root.providers]]\nname = "medium"\ntype = "file"\npath = "${place.at('medium.key')}"\n`);
  const text = readFileSync(place.config, 'utf8').replace('directory = "data"', `directory = "${place.data}"`);
  execFileSync('cp', ['-a', '/etc', etc]);
  mkdirSync(join(etc, 'dke'), { recursive: true, mode: 0o755 });
  writeFileSync(join(etc, 'dke/dke.toml'), text, { mode: 0o600 });
  // Its /etc is ours, for this process only.
  const script = 'mount --bind "$1" /etc && cd / && exec "$2" "$3" root add-provider medium';
  const through = ['unshare', '--mount', 'sh', '-c', script, 'sh', etc, process.execPath, commandPath];
  const [program = '', ...args] = through;
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^medium +file$/m);
  expect(existsSync(place.at('medium.key'))).toBe(true);
  expect(run(['env'], ['doctor', '--config', place.config]).stdout).not.toContain('is not wrapped yet');
});

test('a wrong passphrase: the start waits for the root key, and the doctor says so', async () => {
  const toml = '[[root.providers]]\nname = "phrase"\ntype = "passphrase"\nfile = "phrase"\n';
  const place = prepare(situation('', '', /./, { toml, fresh: true }));
  const phrase = (text: string): void => writeFileSync(place.at('phrase'), `${text}\n`, { mode: 0o600 });
  phrase('a long passphrase of four words');
  expect(await start(place)).toEqual({});
  phrase('another passphrase of four words');
  expect(failures(await diagnose(place))).toMatchObject([
    {
      id: 'root-key',
      evidence: expect.stringContaining('phrase: the passphrase is wrong'),
      fix: expect.stringContaining('dke root unseal'),
    },
  ]);
  expect(await start(place)).toEqual({ sealed: true });
  phrase('a long passphrase of four words');
  expect(failures(await diagnose(place))).toEqual([]);
});

/** The programs as another process runs them. */
const run = (through: readonly string[], args: readonly string[]) => {
  const [program = '', ...before] = through;
  const { status, stdout, stderr } = spawnSync(program, [...before, process.execPath, commandPath, ...args], {
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
};
const diagnoseBy = (through: readonly string[], { config }: Place): readonly CheckResult[] => {
  const { stdout } = run(through, ['doctor', '--config', config, '-o', 'json']);
  return failures(
    (JSON.parse(stdout) as { readonly results: readonly CheckResult[] }[]).flatMap(({ results }) => results),
  );
};

test('too little memory may be locked', () => {
  const limit = ['prlimit', '--memlock=65536:65536'];
  // The capability lifts the limit, so the superuser has to do without it.
  const through = isRoot ? ['setpriv', '--bounding-set=-ipc_lock', ...limit] : limit;
  const place = prepare(situation('', '', /./, {}));
  const [first] = diagnoseBy(through, place);
  expect(first).toMatchObject({ id: 'memory', evidence: expect.stringContaining('RLIMIT_MEMLOCK is 64 KiB') });
  const { status, stderr } = run(through, ['server', '--config', place.config]);
  expect([status, stderr]).toEqual([exitCodes.memory, expect.stringContaining(first?.evidence ?? '-')]);
  // The printed fix: allow the memory.
  expect(diagnoseBy(['env'], place)).toEqual([]);
});

describe.runIf(hasOther)('of a service that is another user', () => {
  test.each([
    ['the data directory', 'data', ({ data }: Place) => data],
    ['the folder of the log', 'logs', ({ at }: Place) => at('logs')],
    ['the database', 'data', ({ data }: Place) => join(data, 'dke.db')],
  ])('%s cannot be written', (_what, check, closed) => {
    const toml = '[log]\ndestination = "logs/dke.log"\n[snapshots]\ndirectory = "kept"\n';
    const place = prepare(situation('', '', /./, { toml }));
    for (const name of ['logs', 'kept']) mkdirSync(place.at(name), { mode: 0o700 });
    execFileSync('chown', ['-R', `${other}:${other}`, place.folder]);
    chmodSync(closed(place), statSync(closed(place)).isDirectory() ? 0o500 : 0o400);
    const as = ['setpriv', `--reuid=${other}`, `--regid=${other}`, '--clear-groups'];
    // The doctor runs as root, and becomes the owner of the data.
    const [first] = diagnoseBy(['env'], place);
    expect(first).toMatchObject({ id: check, evidence: expect.stringContaining(`user ${other} cannot write`) });
    const { stderr } = run(as, ['server', '--config', place.config]);
    expect(stderr).toContain(`${first?.evidence}: ${first?.fix}`);
    execFileSync('sh', ['-c', first?.fix ?? 'false']);
    expect(diagnoseBy(['env'], place)).toEqual([]);
  });
});

test('the start of a service that was in use does not need what it does without', async () => {
  const toml = [
    ...['[root]', 'path = "vault/root.key"', '[snapshots]', 'directory = "kept"'],
    ...['[diagnostics]', 'trusted_authorities = "named"', '[tls]', 'certificate = "own.crt"', 'key = "own.key"', ''],
  ].join('\n');
  // A name that means something in a URL, an authority that is none, and a chain without its
  // issuer.
  const folder = join(base, 'case #1? 50%41');
  mkdirSync(folder, { mode: 0o755 });
  const place = placeAt(folder);
  writeConfig(place, toml);
  for (const name of ['vault', 'kept']) mkdirSync(place.at(name), { mode: 0o700 });
  issue(place, 'own', authority);
  writeFileSync(place.at('named'), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
  expect(await start(place)).toEqual({});
  expect(failures(await diagnose(place))).toEqual([]);
  expect(await start(place)).toEqual({});
  if (!hasOther) return;
  // Nothing can be written beside the root key, and among the snapshots.
  execFileSync('chown', ['-R', `${other}:${other}`, folder]);
  for (const name of ['vault', 'kept']) chmodSync(place.at(name), 0o500);
  const as = ['--reuid', `${other}`, '--regid', `${other}`, '--clear-groups', process.execPath, commandPath];
  const server = await startDaemon('setpriv', [...as, 'server', '--config', place.config], { ready: /^listening on/m });
  await server.stop();
  const results = diagnoseBy(['env'], place);
  expect(results).toMatchObject([{ id: 'folders', evidence: expect.stringContaining('(root.path)') }]);
});

test('another program has the port', async () => {
  const squatter = createServer((socket) => socket.end('hello\n')).listen(0, '127.0.0.1');
  await once(squatter, 'listening');
  try {
    const place = prepare(situation('', '', /./, {}));
    const { port } = squatter.address() as AddressInfo;
    writeFileSync(place.config, readFileSync(place.config, 'utf8').replace('port = 0', `port = ${port}`));
    expect(failures(await diagnose(place))).toMatchObject([
      {
        id: 'listener',
        evidence: expect.stringContaining(`port ${port}`),
        fix: expect.stringContaining('change server.port'),
      },
    ]);
    expect((await start(place)).refused).toContain(`port ${port}`);
    correct()(place);
    expect(failures(await diagnose(place))).toEqual([]);
  } finally {
    squatter.close();
  }
});

test('the doctor changes nothing of a service that has stopped', async () => {
  const place = prepare(situation('', '', /./, {}));
  const listed = (): string =>
    execFileSync('sh', ['-c', 'find . -type f -exec sha256sum {} + | sort; find . -printf "%p %T@ %m\\n" | sort'], {
      cwd: place.folder,
      encoding: 'utf8',
    });
  const before = listed();
  expect(failures(await diagnose(place))).toEqual([]);
  expect(listed()).toBe(before);
  expect(existsSync(join(place.data, 'dke.db-wal'))).toBe(false);
});
