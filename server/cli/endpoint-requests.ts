// `dke endpoint requests` and `dke endpoint find-request`: the request log of the key store endpoints.

import { text as readText } from 'node:stream/consumers';
import type { Command } from 'commander';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import type { EndpointRequest } from '../fronts/contract/api/requests.ts';
import { action, type Paging, paged } from './caller.ts';
import { CommandError } from './exit-codes.ts';
import { exportTo } from './files.ts';
import type { Columns } from './output.ts';

const routes = apiRoutes.requests;

const columns: Columns<EndpointRequest> = [
  ['AT', (row) => row.at],
  ['OPERATION', (row) => row.operation],
  ['STATUS', (row) => row.status],
  ['ERROR', (row) => row.errorName],
  ['REASON', (row) => row.reason],
  ['MS', (row) => row.durationMs.toFixed(1)],
  ['PRINCIPAL', (row) => row.principal],
  ['KMS REQUEST', (row) => row.kmsRequestId],
];

interface SearchOptions extends Paging {
  readonly operation?: string;
  readonly result?: string;
  readonly signed?: string;
  readonly status?: string;
  readonly errorName?: string;
  readonly kmsOperation?: string;
  readonly principal?: string;
  readonly kmsKeyArn?: string;
  readonly externalKeyId?: string;
  readonly requestId?: string;
  readonly kmsRequestId?: string;
  readonly from?: string;
  readonly to?: string;
  readonly export?: string;
  readonly out?: string;
}

export const addRequests = (endpoint: Command): void => {
  paged(
    endpoint
      .command('requests [endpoint]')
      .description('Searches the request log, newest first; of all endpoints when none is named. Texts to the letter.')
      .option('--operation <name>', 'health, metadata, encrypt, decrypt, or unknown')
      .option('--result <result>', 'answered or refused')
      .option('--signed <true|false>', 'with a valid signature, or without one')
      .option('--status <status>', 'HTTP status')
      .option('--error-name <name>', 'for example AccessDeniedException')
      .option('--kms-operation <name>', 'what the cloud was asked, for example GenerateDataKey')
      .option('--principal <arn>', 'the principal of the caller; a * at the end stands for any characters')
      .option('--kms-key-arn <arn>', 'the KMS key; with * at its end, whichever begins so')
      .option('--external-key-id <id>', 'the key of this service')
      .option('--request-id <id>', 'X-Request-Id of the answer')
      .option('--kms-request-id <id>', 'requestID in CloudTrail')
      .option('--from <time>', 'RFC 3339, for example 2026-03-01T09:30:00Z')
      .option('--to <time>', 'RFC 3339; not included')
      .option('--export <format>', 'all that is found, as ndjson or csv')
      .option('--out <file>', 'with --export: into this new file'),
  ).action(
    action<SearchOptions>(async ({ call, stream, output, resolve }, options, name) => {
      const { export: format, out, limit, after, ...filter } = options;
      const id = name === undefined ? undefined : await resolve('endpoint', name);
      if (format === undefined) {
        const query = { ...filter, limit, after };
        const page =
          id === undefined
            ? await call(routes.search, { query })
            : await call(routes.searchOne, { path: { id }, query });
        output.list(page, columns);
        return;
      }
      const query = { ...filter, format };
      await exportTo(out, (into) =>
        id === undefined
          ? stream(routes.export, { query }, into)
          : stream(routes.exportOne, { path: { id }, query }, into),
      );
    }),
  );

  endpoint
    .command('verify-requests')
    .description('Compares the request log with its hashes in the audit log, by whole minutes; the last hour at first.')
    .option('--from <time>', 'RFC 3339, for example 2026-03-01T09:30:00Z')
    .option('--to <time>', 'RFC 3339; not included')
    .action(
      action<{ readonly from?: string; readonly to?: string }>(async ({ call, output }, query) => {
        const verdict = await call(routes.verify, { query: { ...query } });
        output.record(verdict);
        if (!verdict.sound)
          throw new CommandError(
            'checks-failed',
            `the request log was changed, or is not complete: ${verdict.findings[0]}`,
            {
              hint:
                verdict.dropped === 0
                  ? 'export it and the audit log, keep both files, and find out who can write the database'
                  : 'requests without a record mean that the store could not keep up: see dke status; for other findings, export both logs',
            },
          );
      }),
    );

  endpoint
    .command('find-request [id]')
    .description(
      'Finds the requests of a CloudTrail event: pasted into standard input, or by the value of its requestID.',
    )
    .action(
      action(async ({ call, output }, _, id) => {
        if (id === undefined && process.stdin.isTTY) output.say('Paste the event, then press Ctrl-D.');
        const found = await call(routes.correlate, { body: { text: id ?? (await readText(process.stdin)) } });
        if (output.format === 'json') output.record(found);
        else if (found.items.length > 0) for (const item of found.items) output.record(item);
        if (found.items.length > 0) return;
        throw new CommandError('not-found', `no request has the id ${found.kmsRequestIds.join(' or ')}`, {
          hint:
            found.oldest === null
              ? 'the request log is empty: no endpoint of this service was called yet'
              : `the request log begins at ${found.oldest}; a request that never came here is not in it (see dke endpoint requests)`,
        });
      }),
    );
};
