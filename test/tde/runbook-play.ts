// A runbook, played as a person follows it: each statement on the simulated database, each line of
// a configuration file into that file, each shell command in a shell in addition to the database's
// files. The promise of a step is compared with the database's answer.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect } from 'vitest';
import type { FilledRunbook, RunbookStep } from '../../server/contract/api/runbooks-routes.ts';
import { commandPath } from '../support/command.ts';
import { run } from '../support/tools.ts';
import type { Instance } from './instance.ts';
import { OraError } from './ora-error.ts';
import type { Stage } from './scenarios.ts';
import type { Row } from './views.ts';
import { pin } from './world.ts';

export const passwords = { old: 'old-wallet-password-5d10', wallet: 'new-wallet-password-c88e' } as const;

/** What a step answered: the rows of its last query, and what its shell commands printed. */
export interface StepAnswer {
  readonly rows: readonly Row[];
  readonly out: string;
}

/** What a person types for the places in angle brackets. */
export type Typed = Readonly<Record<string, string>>;
const alwaysTyped: Typed = {
  keystore_pin: pin,
  old_password: passwords.old,
  wallet_password: passwords.wallet,
};
/** Relative to the database's own directory, in which the shell stands. */
const walletOf = (on: Instance): Typed => ({ wallet_directory: relative(on.directory, on.walletDirectory) });

export interface Play {
  readonly stage: Stage;
  readonly database: Instance;
  /** Where `target` and `target-host` are. */
  readonly target?: Instance;
  readonly typed?: Partial<Record<RunbookStep['place'], Typed>>;
  /** What a step promises in words, by its id. */
  readonly promises?: Readonly<Record<string, (on: Instance, answer: StepAnswer) => Promise<void> | void>>;
  /** The steps that were answered with the error of the step after them, as `step ORA-number`. */
  readonly met?: Set<string>;
  /** Commands of `dke` run too: they are the same for every release. */
  readonly commands: boolean;
  readonly beforeStep?: (id: string) => Promise<void> | void;
}

/** SQL*Plus ends its own commands with the line, and SQL with a semicolon. */
export const statementsOf = (sql: string): readonly string[] => {
  const found: string[] = [];
  let pending = '';
  for (const line of sql.split('\n').map((each) => each.trim())) {
    pending = pending === '' ? line : `${pending} ${line}`;
    if (!pending.endsWith(';') && !/^(SHUTDOWN|STARTUP)\b/.test(pending)) continue;
    found.push(pending.replace(/;$/, ''));
    pending = '';
  }
  if (pending !== '') throw new Error(`the statement has no end: ${pending}`);
  return found;
};

/**
 * `WRL_TYPE HSM, STATUS OPEN; WRL_TYPE FILE, STATUS OPEN.`: there are such rows, and every row
 * whose first column is promised is so. With `Only` before it there are no others.
 */
const promisedRows = (text: string): readonly Row[] | undefined => {
  if (!/^(Only )?[A-Z_]+ [A-Z_]+((, |; )[A-Z_]+ [A-Z_]+)*\.$/.test(text)) return undefined;
  return text
    .replace(/^Only /, '')
    .slice(0, -1)
    .split('; ')
    .map((row) => Object.fromEntries(row.split(', ').map((pair) => pair.split(' ') as [string, string])));
};

const holds = (row: Row, promised: Row): boolean =>
  Object.entries(promised).every(([column, value]) => row[column] === value);

const expectRows = (rows: readonly Row[], promised: readonly Row[], only: boolean): void => {
  for (const each of promised) {
    const [[column = '', value] = []] = Object.entries(each);
    const about = rows.filter((row) => row[column] === value);
    expect(about).not.toEqual([]);
    expect(about.filter((row) => !holds(row, each))).toEqual([]);
  }
  if (only) expect(rows.filter((row) => !promised.some((each) => holds(row, each)))).toEqual([]);
};

/** What a statement prints when it was done. */
const printed = /^(keystore|System|Database) altered\.$/;

interface Shell {
  /** The words of the runbook that are this machine's here. */
  readonly here: (text: string, on: Instance) => string;
  /** Answers what they print. */
  run(commands: string, on: Instance): Promise<string>;
}

/**
 * `dke` is the built command; `scp` copies from the database's directory, as no second machine is
 * here.
 */
const openShell = (play: Play): Shell => {
  const { stage, database } = play;
  const { site } = stage.world;
  if (site === undefined) throw new Error('a runbook is played with a service');
  const programs = stage.folder(`programs-${database.name}`);
  mkdirSync(programs, { recursive: true });
  const program = (name: string, text: string): void =>
    writeFileSync(join(programs, name), `#!/bin/sh\nset -eu\n${text}\n`, { mode: 0o755 });
  program(
    'dke',
    `if [ "$1" = provider ]; then
  set -- "$@" --base "$EXTAPI"
  if [ "$2" != check ]; then set -- "$@" --log-directory '${site.logDirectory}' --unit-directory '${programs}'; fi
fi
exec '${process.execPath}' '${commandPath}' "$@"`,
  );
  const config = (on: Instance): string => on.host.environment.DKE_PKCS11_CONF ?? '';
  const target = play.target ?? database;
  // Absolute is only the configuration, which has one path on both hosts, and here two.
  program(
    'scp',
    `for each; do shift; case $each in
  (*:'${config(target)}') set -- "$@" '${config(database)}' ;;
  (primary:*|source:*) set -- "$@" '${database.directory}'/"\${each#*:}" ;;
  (*) set -- "$@" "$each" ;;
esac; done
exec cp "$@"`,
  );
  program('ssh', `shift; cd '${database.directory}'; exec "$@"`);
  const token = join(programs, 'token');
  writeFileSync(token, site.token, { mode: 0o600 });
  const environment = {
    ...process.env,
    PATH: `${programs}:${process.env.PATH}`,
    DKE_SERVER: site.server.url,
    DKE_CA_FILE: site.server.caFile,
    DKE_TOKEN_FILE: token,
  };
  const owner = `${process.getuid?.()}:${process.getgid?.()}`;
  return {
    here: (text, on) =>
      text
        .replaceAll('/opt/oracle/extapi/64', on.host.base)
        .replaceAll('/etc/dke/pkcs11.toml', config(on))
        .replaceAll('/var/log/dke-pkcs11', site.logDirectory)
        .replaceAll('oracle:oinstall', owner),
    run: async (commands, on) => {
      const folder = on.directory;
      const { code, out, complaints } = await run('bash', ['-euc', commands], {
        environment: { ...environment, ...on.host.environment, EXTAPI: on.host.base },
        folder,
      });
      expect(code, `${commands}\n${out}${complaints}`).toBe(0);
      return out;
    },
  };
};

const typeIn = (text: string, typed: Typed): string =>
  // In a command for a shell, where angle brackets would mean a file, the place is in capital
  // letters.
  text.replaceAll(/<(\w+)>|\b(OTHER_[A-Z]+)\b/g, (place, angled?: string, capitals = '') => {
    const name = angled ?? capitals.toLowerCase();
    const value = typed[name] ?? alwaysTyped[name];
    if (value === undefined) throw new Error(`the runbook does not say what ${place} is`);
    return value;
  });

const isCommand = ({ shell, command, sql }: RunbookStep): boolean =>
  sql === undefined && (shell ?? command)?.startsWith('dke ') === true;

/**
 * Plays every step in its order; a step for an error follows the statement that was answered with
 * it, and is skipped otherwise.
 */
export const playRunbook = async (runbook: FilledRunbook, play: Play): Promise<void> => {
  const shell = openShell(play);
  /** What the last statement was answered with. */
  let refused: string | undefined;
  for (const [index, step] of runbook.steps.entries()) {
    if (step.onlyAfter !== undefined && step.onlyAfter !== refused) continue;
    refused = undefined;
    await play.beforeStep?.(step.id);
    const on = step.place.startsWith('target') ? play.target : play.database;
    if (on === undefined) throw new Error(`${runbook.name}/${step.id} is done at a target, and there is none`);
    const typed = { ...walletOf(on), ...play.typed?.[step.place] };
    const at = `${runbook.name}/${step.id} (${runbook.release})`;
    let rows: readonly Row[] = [];
    for (const statement of statementsOf(step.sql ?? ''))
      try {
        const answer = await on.execute(typeIn(statement, typed));
        if (/^SELECT\b/i.test(statement)) rows = answer;
      } catch (error) {
        const other = runbook.steps[index + 1]?.onlyAfter;
        if (error instanceof OraError && error.code === other) {
          refused = other;
          break;
        }
        throw new Error(`${at}: ${statement}: ${(error as Error).message}`, { cause: error });
      }
    if (refused !== undefined) {
      play.met?.add(`${step.id} ${refused}`);
      continue;
    }
    const out = await playShell(step, on, shell, play.commands, typed);
    if (step.expect === undefined || printed.test(step.expect)) continue;
    const promised = promisedRows(step.expect);
    const own = play.promises?.[step.id];
    if (!play.commands && isCommand(step)) continue;
    if (promised === undefined && own === undefined)
      throw new Error(`${at} promises what no test checks: ${step.expect}`);
    try {
      if (promised !== undefined) expectRows(rows, promised, step.expect.startsWith('Only '));
      await own?.(on, { rows, out });
    } catch (error) {
      throw new Error(`${at} promises "${step.expect}": ${(error as Error).message}`, { cause: error });
    }
  }
};

/** The skipped steps, with their reasons. */
const notPlayed: Readonly<Record<string, string>> = {
  'apt install ./dke-provider_*.deb': 'it changes this machine: packages.test.ts installs the package into a folder',
  'dke provider rollback --owner=oracle:oinstall': 'no second build is here: provider-install.test.ts goes back to one',
};

const playShell = async (
  { shell: commands, command, setting }: RunbookStep,
  on: Instance,
  shell: Shell,
  all: boolean,
  typed: Typed,
): Promise<string> => {
  if (setting !== undefined) on.writeSqlnet(typeIn(setting.replace(/^ENCRYPTION_WALLET_LOCATION = /, ''), typed));
  let out = '';
  for (const each of new Set([commands, command])) {
    if (each === undefined || each in notPlayed || (each.startsWith('dke ') && !all)) continue;
    if (/^orapki wallet change_pwd\b/.test(each)) await on.orapki({ password: passwords.old, next: passwords.wallet });
    else out += await shell.run(shell.here(typeIn(each, typed), on), on);
  }
  return out;
};
