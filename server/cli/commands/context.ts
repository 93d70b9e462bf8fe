// `dke context`: adds, lists, chooses and removes named services (context-file.ts).

import { resolve } from 'node:path';
import type { Command } from 'commander';
import { command } from '../../base/command-line.ts';
import { checkUrl, type GlobalOptions } from '../service/caller.ts';
import { addNoun } from '../service/command-rows.ts';
import { type Context, changeContexts, contextFile, findContext, readContexts } from '../service/context-file.ts';
import { CommandError } from '../terminal/exit-codes.ts';

export const addContext = (program: Command): void => {
  const noun = addNoun(program, 'context');
  noun.local(
    'add <name>',
    'Adds or replaces a context from the options --server, --ca-file, --token-file and --tenant. The first context is used immediately.',
    {},
    (output, _, name = '') => {
      const given = program.opts<GlobalOptions>();
      if (program.getOptionValueSource('server') !== 'cli')
        throw new CommandError('config', 'the address of the service is missing', {
          hint: command`dke context add --server https://HOST ${name}`,
        });
      if (given.tokenFile === '-' || !/^[^\s-][^\s]{0,63}$/.test(name))
        throw new CommandError(
          'config',
          given.tokenFile === '-'
            ? 'a context requires a file with the token'
            : `${name} cannot be the name of a context`,
        );
      const of = (member: 'caFile' | 'tokenFile' | 'tenant'): string | undefined =>
        program.getOptionValueSource(member) === 'cli' ? given[member] : undefined;
      const files = (['caFile', 'tokenFile'] as const).flatMap((member) => {
        const path = of(member);
        return path === undefined ? [] : [[member, resolve(path)] as const];
      });
      const tenant = of('tenant');
      const context: Context = {
        server: checkUrl(given.server),
        ...Object.fromEntries(files),
        ...(tenant === undefined ? {} : { tenant }),
      };
      changeContexts(({ current, contexts }) => ({
        current: current ?? name,
        contexts: { ...contexts, [name]: context },
      }));
      output.record({ name, ...context, file: contextFile() });
    },
  );
  noun.local('list', 'Lists contexts; the one in use has a star.', {}, (output) => {
    const { current, contexts } = readContexts();
    const items = Object.entries(contexts).map(([name, each]) => ({ name, used: name === current, ...each }));
    output.list(
      { items },
      {
        NAME: (row) => (row.used ? `${row.name} *` : row.name),
        SERVER: 'server',
        'CA FILE': 'caFile',
        'TOKEN FILE': 'tokenFile',
        TENANT: 'tenant',
      },
    );
  });
  noun.local('use <name>', 'Selects the context to use.', {}, (output, _, name = '') => {
    changeContexts((all) => {
      findContext(all, name);
      return { ...all, current: name };
    });
    const context = findContext(readContexts(), name);
    output.record({ name, ...context });
  });
  noun.local(
    'remove <name>',
    'Removes a context. Its files stay. If it was in use, no context is in use afterwards.',
    {},
    (output, _, name = '') => {
      const context = findContext(readContexts(), name);
      changeContexts(({ current, contexts: { [name]: removed, ...contexts } }) => ({
        current: current === name ? null : current,
        contexts,
      }));
      output.record({ name, ...context });
    },
  );
};
