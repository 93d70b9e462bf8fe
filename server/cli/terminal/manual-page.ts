// The manual page dke(1), in roff, made of the commands themselves. The packages install it
// (provider/packaging).

import type { Command } from 'commander';
import { type ExitClass, exitCodes } from './exit-codes.ts';

const meanings: Readonly<Record<ExitClass, string>> = {
  ok: 'done',
  internal: 'an internal error of the command or the service',
  config: 'the command line, the configuration, or a field of the request',
  permission: 'a file has the wrong owner or mode, or cannot be read or written',
  listen: 'the port of the server is in use or cannot be opened',
  store: 'the database is damaged, locked by another server, newer, or its disk failed',
  'root-key': 'the root key is missing, damaged, or belongs to another database',
  memory: 'not enough locked memory for keys',
  unreachable: 'no answer: address, TLS, time-out, or a service that is not ready',
  denied: 'not signed in, or not permitted',
  'not-found': 'not found',
  refused: 'the state does not allow it',
  'checks-failed': 'a check found something',
  waiting: 'nothing was changed yet: others must approve it',
  'may-exist': 'a secret that was not shown may have been created: list it, and revoke or remove it before a repeat',
};

const special: Readonly<Record<string, string>> = { '\\': '\\(rs', '-': '\\-', '’': '\\(cq', '…': '...' };
/** Text of a line: nothing in it is a request or an escape. */
const roff = (text: string): string => {
  const line = text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[\\\-’…]/g, (character) => special[character] ?? character)
    .replaceAll(
      /[^\u0020-\u007e]/gu,
      (character) => `\\[u${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
    );
  return /^[.']/.test(line) ? `\\&${line}` : line;
};
const bold = (text: string): string => `\\fB${roff(text)}\\fR`;

const optionsOf = (command: Command): readonly string[] =>
  command.options.flatMap(({ flags, description, envVar, argChoices, defaultValue }) => {
    const more = [
      argChoices === undefined ? '' : ` One of ${argChoices.join(', ')}.`,
      typeof defaultValue === 'string' ? ` Default: ${defaultValue}.` : '',
      envVar === undefined ? '' : ` Variable: ${envVar}.`,
    ];
    const text = `${description}${more.some((each) => each !== '') && !/[.!?]$/.test(description) ? '.' : ''}${more.join('')}`;
    return ['.TP', bold(flags), roff(text)];
  });

const commandsOf = (command: Command, name: string): readonly string[] => {
  const own = command.commands.length === 0 || command.description() !== '';
  const words = command.registeredArguments.map((argument) => {
    const text = argument.variadic ? `${argument.name()}...` : argument.name();
    return argument.required ? `<${text}>` : `[${text}]`;
  });
  const options = optionsOf(command);
  return [
    ...(own ? ['.TP', bold([name, ...words].join(' ')), roff(command.description() || command.summary())] : []),
    ...(own && options.length > 0 ? ['.RS', ...options, '.RE'] : []),
    ...command.commands.flatMap((each) => commandsOf(each, `${name} ${each.name()}`)),
  ];
};

/** The manual page; the same commands, version and date give the same text. */
export const manualPage = (program: Command, version: string, date: Date): string => {
  const [day] = date.toISOString().split('T');
  return [
    `.TH DKE 1 "${day}" "dke ${roff(version)}" "External key management"`,
    '.SH NAME',
    'dke \\- run and administer the key management service',
    '.SH SYNOPSIS',
    '.B dke',
    '.RI [ options ] " command " [ arguments ]',
    '.SH DESCRIPTION',
    roff(program.description()),
    '.SH OPTIONS',
    'These options apply to every command.',
    ...optionsOf(program),
    ...program.commands.flatMap((each) => [
      `.SS ${roff(`dke ${each.name()}`)}`,
      roff(each.summary() || each.description()),
      ...commandsOf(each, `dke ${each.name()}`),
    ]),
    '.SH EXIT STATUS',
    ...Object.entries(exitCodes).flatMap(([name, code]) => ['.TP', String(code), roff(meanings[name as ExitClass])]),
    '.SH FILES',
    '.TP',
    '.I ~/.config/dke/contexts.json',
    'Named services of dke context list.',
    '.TP',
    '.I ~/.config/dke/session.json',
    'Sessions of dke login.',
    '',
  ].join('\n');
};
