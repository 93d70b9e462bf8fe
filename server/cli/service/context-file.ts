// The contexts of dke context: named services. A context has the address of one, the authority to
// trust, the path of the token's file and the tenant; never a secret. Options and environment win
// over it, and for another service than its own it is not used at all.

import type { Command } from 'commander';
import { CommandError } from '../terminal/exit-codes.ts';
import { checkUrl, type GlobalOptions } from './caller.ts';
import { changeOwnFile, ownFile, readOwnFile } from './own-file.ts';

const members = ['server', 'caFile', 'tokenFile', 'tenant'] as const;
export type Context = { readonly server: string } & { readonly [K in (typeof members)[number]]?: string };
interface Contexts {
  readonly current: string | null;
  readonly contexts: { readonly [name: string]: Context };
}

export const contextFile = (): string => ownFile('contexts.json');

const isContext = (value: unknown): value is Context =>
  value !== null &&
  typeof value === 'object' &&
  'server' in value &&
  Object.entries(value).every(
    ([name, member]) => members.some((each) => each === name) && typeof member === 'string' && member !== '',
  );
const areContexts = (value: unknown): value is Contexts => {
  if (value === null || typeof value !== 'object' || !('contexts' in value) || !('current' in value)) return false;
  const { current, contexts } = value;
  return (
    (current === null || typeof current === 'string') &&
    contexts !== null &&
    typeof contexts === 'object' &&
    Object.values(contexts).every(isContext)
  );
};

/** Throws `CommandError`, which names the file, when it is not what we wrote. */
export const readContexts = (): Contexts =>
  readOwnFile(
    contextFile(),
    (value) => (areContexts(value) ? value : undefined),
    'a file of contexts',
    'remove it, and add the contexts again',
  ) ?? {
    current: null,
    contexts: {},
  };

export const findContext = ({ contexts }: Contexts, name: string): Context => {
  if (!Object.hasOwn(contexts, name))
    throw new CommandError('not-found', `there is no context named ${name}`, { hint: 'dke context list' });
  return contexts[name] as Context;
};

/** Two commands at once: the change of each is in the file. */
export const changeContexts = (next: (contexts: Contexts) => Contexts): void =>
  changeOwnFile(contextFile(), (write) => write(next(readContexts())));

const isGiven = (program: Command, name: string): boolean =>
  !['default', undefined].includes(program.getOptionValueSource(name));

/**
 * The global options, with those of the context where neither an option nor a variable says
 * otherwise.
 */
export const globalsOf = (command: Command): GlobalOptions => {
  let program = command;
  while (program.parent !== null) program = program.parent;
  const { context: named, server } = program.opts<GlobalOptions>();
  const all = readContexts();
  const name = named ?? all.current;
  if (name !== null) {
    const context = findContext(all, name);
    const isOther = isGiven(program, 'server') && checkUrl(server) !== context.server;
    if (isOther && named !== undefined)
      throw new CommandError('config', `context ${name} belongs to ${context.server}, not to ${server}`, {
        hint: 'use --context or --server, not both',
      });
    for (const member of isOther ? [] : members)
      if (!isGiven(program, member) && context[member] !== undefined)
        program.setOptionValueWithSource(member, context[member], 'config');
  }
  return command.optsWithGlobals<GlobalOptions>();
};
