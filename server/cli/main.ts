#!/usr/bin/env node
// `dke`: reads the command line, runs one command, and ends with the exit code of its class
// (exit-codes.ts).

import { existsSync, readFileSync } from 'node:fs';
import { type Command, CommanderError } from 'commander';
import { ignoreForeignSignals } from '../base/foreign-signals.ts';
import { redact } from '../base/redaction.ts';
import { toldError } from '../base/start-error.ts';
import { makeProgramFor } from './program.ts';
import { askedService, readAnswers, rememberAsked } from './service/asked.ts';
import { CommandError, type ExitClass, exitCodes } from './terminal/exit-codes.ts';
import { isShowingSecret, type OutputFormat, printError, secretExists, showingSecret } from './terminal/output.ts';
import { clearProgress, startProgress, stopProgress } from './terminal/progress.ts';

ignoreForeignSignals();

/** package.json is two folders up from the sources and three from what was built of them. */
const readVersion = (): string => {
  for (const up of ['../../package.json', '../../../package.json']) {
    const url = new URL(up, import.meta.url);
    if (!existsSync(url)) continue;
    const { version } = JSON.parse(readFileSync(url, 'utf8')) as { readonly version?: unknown };
    if (typeof version === 'string') return version;
  }
  return 'unknown';
};

const asCommandError = (error: unknown, place?: string): CommandError => {
  if (error instanceof CommandError) return error;
  const told = toldError(error, place);
  return new CommandError(told.class, redact(told.message));
};

/** A fault of the program is blamed on an answer only where that answer does not fit. */
const asAnswerFault = async (error: unknown): Promise<unknown> => {
  const [url, answers] = [askedService(), readAnswers()];
  const mayBe = error instanceof TypeError || error instanceof SyntaxError || error instanceof RangeError;
  if (!mayBe || url === undefined || answers.length === 0) return error;
  const { answerFault } = await import('./service/answer-fault.ts');
  const fault = answerFault(answers);
  if (fault === undefined) return error;
  const why = process.env.DKE_DEBUG === '1' ? `${fault}; ${toldError(error).message}` : fault;
  return new CommandError('unreachable', `the answer of ${url} is not the one that this version expects`, {
    hint: `check that nothing in between changes answers, and compare the versions (dke --version, dke status) (${redact(why)}; DKE_DEBUG=1 shows where)`,
  });
};

/** An older Node has no node:sqlite, among others, and would fail with a stack trace. */
const oldestNode = 24;
if (Number.parseInt(process.versions.node, 10) < oldestNode) {
  process.stderr.write(
    `error: dke needs Node ${oldestNode} or later, and ${process.execPath} is Node ${process.versions.node}\n` +
      'hint: the packages dke-server and dke-provider include it (/usr/bin/dke); in a checkout: node_modules/.bin/node dist/server/cli/main.js\n',
  );
  process.exit(exitCodes.config);
}

rememberAsked(undefined);
showingSecret(false);
const args = process.argv.slice(2);
/** What `dke --version` prints. Everything else needs no addon to say which version it is. */
const describeVersion = async (): Promise<string> => {
  try {
    const { core } = await import('../../addon/core.ts');
    return `${readVersion()} (OpenSSL ${core.libcryptoVersion()}, Node ${process.versions.node})`;
  } catch {
    // The package of an older build may be incomplete: its version is what is asked for then.
    return readVersion();
  }
};
const asksForVersion = ['--version', '-V'].includes(args[0] ?? '');
const program = await makeProgramFor(asksForVersion ? await describeVersion() : readVersion(), args);
const exitWith = (exitClass: ExitClass): void => {
  process.exitCode = exitCodes[exitClass];
};
// Commander prints help and usage errors itself; how the process ends is decided here.
const overrideExit = (command: typeof program): void => {
  command.exitOverride();
  for (const each of command.commands) overrideExit(each as typeof program);
};
overrideExit(program);

const sayWhy = (error: unknown, place?: string): void => {
  clearProgress();
  const known = asCommandError(error, place);
  printError(known, program.opts<{ output: OutputFormat }>().output, (text) => {
    process.stderr.write(text);
  });
  exitWith(known.exitClass);
};

// The reader of a pipe may close it before the end of a list: that is not a fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (isShowingSecret())
    sayWhy(new CommandError('may-exist', `standard output took no secret (${error.code})`, { hint: secretExists }));
  else if (error.code !== 'EPIPE') sayWhy(error, 'standard output');
  process.exit();
});
// What cannot be said costs lines, never the work: its exit code says how it ended.
process.stderr.on('error', () => undefined);

const nameOf = (command: Command): string =>
  command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
program.hook('preAction', (_, command) => startProgress(nameOf(command)));

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) exitWith(error.exitCode === 0 ? 'ok' : 'config');
  else sayWhy(await asAnswerFault(error));
} finally {
  stopProgress();
}
