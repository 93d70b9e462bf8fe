// `dke endpoint requests` and `dke endpoint find-request`: the request log of the key store
// endpoints.

import { text as readText } from 'node:stream/consumers';
import { operations } from '../../clients/typescript/gen/operations.ts';
import { type Noun, pagingFlags } from '../service/command-rows.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import { exportTo } from '../terminal/secret-files.ts';

const routes = operations.requests;
const span = {
  '--from <time>': 'RFC 3339, for example 2026-03-01T09:30:00Z',
  '--to <time>': 'RFC 3339; not included',
} as const;

export const addRequests = (noun: Noun): void => {
  noun.act(
    'requests [endpoint]',
    'Searches the request log, newest first. Without an endpoint, searches all. Texts must match exactly.',
    {
      '--operation <name>': 'health, metadata, encrypt, decrypt, or unknown',
      '--result <result>': 'answered or refused',
      '--signed <true|false>': 'with a valid signature, or without one',
      '--status <status>': 'HTTP status',
      '--error-name <name>': 'for example AccessDeniedException',
      '--kms-operation <name>': 'the operation of the cloud, for example GenerateDataKey',
      '--principal <arn>': 'the principal of the caller; a * at the end stands for any characters',
      '--kms-key-arn <arn>': 'the KMS key; a * at the end stands for any characters',
      '--aws-source-vpc <id>': 'the VPC that the request of the cloud came from',
      '--aws-source-vpce <id>': 'the VPC endpoint that it came through',
      '--kms-via-service <name>': 'the service that asked the cloud, for example s3.eu-central-1.amazonaws.com',
      '--external-key-id <id>': 'id of the key in DKE',
      '--request-id <id>': 'X-Request-Id of the answer',
      '--kms-request-id <id>': 'requestID in CloudTrail',
      ...span,
      '--export <format>': 'write all results, as ndjson or csv',
      '--out <file>': 'with --export: write to this new file',
      ...pagingFlags,
    },
    async ({ call, stream, output }, { export: format, out, limit, after, ...filter }, id) => {
      if (format === undefined) {
        const query = { ...filter, limit, after };
        output.list(
          id === undefined
            ? await call(routes.search, { query })
            : await call(routes.searchOne, { path: { id }, query }),
          {
            AT: 'at',
            OPERATION: 'operation',
            STATUS: 'status',
            ERROR: 'errorName',
            REASON: 'reason',
            MS: (row) => row.durationMs.toFixed(1),
            PRINCIPAL: 'principal',
            'KMS REQUEST': 'kmsRequestId',
          },
        );
        return;
      }
      const query = { ...filter, format };
      await exportTo(out, (into) =>
        id === undefined
          ? stream(routes.export, { query }, into)
          : stream(routes.exportOne, { path: { id }, query }, into),
      );
    },
  );

  noun.row(
    routes.verify,
    'verify-requests',
    'Compares the request log with its hashes in the audit log, minute by minute. Default: the last hour.',
    {
      options: span,
      fault: ({ valid, findings, dropped }) =>
        valid
          ? undefined
          : new CommandError('checks-failed', `the request log was changed, or is not complete: ${findings[0]}`, {
              hint:
                dropped === 0
                  ? 'export it and the audit log, keep both files, and find out who can write to the database'
                  : 'requests without a record mean that the store could not keep up: see dke status; for other findings, export both logs',
            }),
    },
  );

  noun.act(
    'find-request [id]',
    'Finds the requests of a CloudTrail event: pasted into standard input, or by the value of its requestID.',
    {},
    async ({ call, output }, _, id?: string) => {
      if (id === undefined && process.stdin.isTTY) output.say('Paste the event, then press Ctrl-D.');
      const found = await call(routes.correlate, { body: { text: id ?? (await readText(process.stdin)) } });
      if (output.raw) output.record(found);
      else for (const item of found.items) output.record(item);
      if (found.items.length > 0) return;
      throw new CommandError('not-found', `no request has the id ${found.kmsRequestIds.join(' or ')}`, {
        hint:
          found.oldest === null
            ? 'the request log is empty: no endpoint of this service was called yet'
            : `the request log begins at ${found.oldest}; a request that never came here is not in it (see dke endpoint requests)`,
      });
    },
  );
};
