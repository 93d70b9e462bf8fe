// `dke tenant`: who everything belongs to, and the whole life of one.

import type { Command } from 'commander';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { addNoun } from '../service/command-rows.ts';

const routes = operations.tenants;

export const addTenant = (program: Command): void => {
  const noun = addNoun(program, 'tenant');
  noun.row(routes.create, 'create <name>', 'Creates an empty tenant with its own keys.');
  noun.row(routes.list, 'list', 'Lists tenants, including purged ones.', {
    columns: {
      ID: 'id',
      NAME: 'name',
      STATE: 'state',
      CREATED: 'createdAt',
      'PURGED FROM': (row) => row.purgeAt ?? '',
    },
  });
  noun.row(routes.get, 'show <tenant>', 'Shows a tenant, by id or name.');
  noun.row(routes.rename, 'rename <tenant> <name>', 'Renames a tenant. Its id and its contents stay.');
  noun.row(routes.resume, 'resume <tenant>', 'Resumes a suspended tenant.');
  noun.row(routes.restore, 'restore <tenant>', 'Restores a deleted tenant as it was, until its retention ends.');

  for (const [verb, description, consequence] of [
    [
      'suspend',
      'Stops everything in a tenant immediately, until it is resumed.',
      'stops immediately, until it is resumed',
    ],
    [
      'delete',
      'Deletes a tenant: everything in it stops immediately. It can be restored for a limited time.',
      'stops immediately',
    ],
    ['purge', 'Erases a deleted tenant permanently.', 'is erased permanently'],
  ] as const)
    noun.row(routes[verb], `${verb} <tenant>`, description, {
      plan: {
        name: ({ tenant }) => tenant.name,
        say: ({ tenant, impact: { endpoints, applications, keys, tokens, copies } }) =>
          `Tenant ${tenant.name} ${consequence}: ${endpoints} endpoints, ${applications} applications of databases, ${keys} keys, ${tokens} tokens.${
            copies === 0 ? '' : ` ${copies} exported snapshots and backups are not erased: dke copy list.`
          }`,
      },
    });
};
