// `dke audit`: what happened, and whether the log of it is complete.

import type { Command } from 'commander';
import { type Checkpoint, parseCheckpoint, verifyLogNote } from '../../base/checkpoint.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { AuditRecord } from '../../clients/typescript/gen/types.ts';
import { addNoun, type Given } from '../service/command-rows.ts';
import { readVerifier, verifierHelp } from '../service/verifier-key.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import type { Output } from '../terminal/output.ts';
import { exportTo, readLines, readTextFile } from '../terminal/secret-files.ts';
import { verifyAuditLog } from '../verify/audit-export.ts';

/** A note that was kept elsewhere. Who signed it shows when the log has told which keys it had. */
const readCheckpoint = (path: string): { readonly path: string; readonly note: string; readonly is: Checkpoint } => {
  const note = readTextFile(path);
  const is = parseCheckpoint(note);
  if (is === null) throw new CommandError('checks-failed', `${path} is not a checkpoint`);
  return { path, note, is };
};

/** The process and host of a database; the address of everybody else. */
const placeOf = ({ details: { process: program, host }, peer }: AuditRecord): string | null =>
  typeof program === 'string' && typeof host === 'string' ? `${program} on ${host}` : peer;

const verifyFlags = {
  '--key <key>': { help: verifierHelp, required: true },
  '--checkpoint <file...>':
    'a checkpoint stored elsewhere (next to the root key, in a sink): detects records that are missing at the end',
  '--requests <file>':
    'also compare the request log with its hashes (dke endpoint requests --export ndjson, exported before the audit log)',
} as const;

const verifyExport = async (
  output: Output,
  { key, checkpoint = [], requests }: Given<typeof verifyFlags>,
  file: string,
): Promise<void> => {
  // Loaded only here: the module imports the schemas of the contract, which are large.
  const { gatherMinutes, verifyRequestLog } = await import('../verify/request-export.ts');
  const verifier = readVerifier(key);
  const known = checkpoint.map(readCheckpoint);
  const minutes = gatherMinutes();
  const { findings, keys, ...counts } = await verifyAuditLog(
    readLines(file),
    verifier,
    known.map(({ is }) => is),
    minutes.add,
  );
  const signers = keys.map((publicKey) => ({ publicKey, until: null }));
  for (const { path, note } of known)
    if (verifyLogNote(note, verifier.name, signers) === null)
      throw new CommandError('checks-failed', `${path} is not a checkpoint that this log's keys have signed`);
  const ofRequests = requests === undefined ? undefined : await verifyRequestLog(readLines(requests), minutes.end());
  output.record({
    log: verifier.name,
    ...counts,
    ...(ofRequests === undefined ? {} : { requestLog: ofRequests }),
    valid: findings.length + (ofRequests?.findings.length ?? 0) === 0,
    findings,
  });
  if (findings.length === 0 && ofRequests !== undefined && ofRequests.findings.length > 0)
    throw new CommandError(
      'checks-failed',
      `the request log was changed, or is not complete: ${ofRequests.findings[0]}`,
      {
        hint: 'the file must be the complete log, as ndjson, exported before the audit log; if it is, keep both files and compare them with other exports',
      },
    );
  if (findings.length === 0) return;
  throw new CommandError('checks-failed', `the log differs from what was signed: ${findings[0]}`, {
    hint: 'keep this file; compare it with the sinks and with another export to find what was changed and when',
  });
};

const routes = operations.audit;
const span = { '--from <time>': 'RFC 3339, inclusive', '--to <time>': 'RFC 3339, exclusive' } as const;

export const addAudit = (program: Command): void => {
  const noun = addNoun(program, 'audit');
  noun.row(
    routes.log,
    'log',
    'Shows the key that signs the audit log. Store verifierKey where the service cannot change it.',
  );
  noun.row(routes.checkpoints, 'checkpoints', 'Lists the checkpoints of the audit log, newest first.', {
    columns: { SIZE: 'size', AT: 'at', ROOT: (row) => row.note.split('\n')[2] },
  });
  noun.row(
    routes.sinks,
    'sinks',
    'Shows where the audit log and the request log are forwarded to, and how far each sink is behind.',
    {
      columns: {
        NAME: 'name',
        TYPE: 'type',
        LOG: 'log',
        TARGET: 'target',
        'LAST RECORD': 'forwarded',
        BEHIND: 'lag',
        LOST: 'lost',
        'FORK AT': (row) => row.fork?.record,
        DELIVERED: 'deliveredAt',
        'FAILING SINCE': (row) => row.failure?.since,
        WHY: (row) => row.failure?.message,
      },
    },
  );
  noun.row(
    routes.rotateKey,
    'rotate-key',
    'Gives the audit log a new signing key. The former key signs the record of this rotation and is then removed. The root key is rotated, too. ' +
      'Store the new verifierKey, and back up the root key again.',
  );
  noun.row(
    routes.prove,
    'prove <sequence>',
    'Proves that a record is in the log: its text, a checkpoint, and the hashes between them (RFC 9162).',
  );
  noun.row(
    routes.migrations,
    'migrations [application]',
    'Lists key migration activity, newest first: master keys that databases created, and their uses.',
    {
      options: span,
      columns: {
        AT: 'at',
        WHAT: 'what',
        APPLICATION: 'applicationName',
        FROM: (row) => (row.process === null ? row.host : `${row.process} on ${row.host}`),
        LABEL: 'label',
        USES: (row) =>
          Object.entries(row.uses)
            .map(([use, count]) => `${use} ${count}`)
            .join(', ') || null,
        FAILED: 'failures',
      },
    },
  );
  noun.act(
    'export',
    'Writes the complete log with its checkpoints, one on each line; with --tenant, the part of that tenant, which can be verified separately. Audited.',
    { '--out <file>': 'write to this new file' },
    ({ stream, tenant }, { out }) =>
      exportTo(out, (into) => stream(tenant === undefined ? routes.export : routes.exportTenant, {}, into)),
  );
  noun.local(
    'verify <file>',
    'Checks an export offline: every record, its position and every checkpoint. Needs no service and no token. - reads ' +
      'standard input.',
    verifyFlags,
    (output, options, file = '') => verifyExport(output, options, file),
  );
  noun.row(routes.list, 'list', 'Lists audit records, newest first.', {
    options: {
      '--kind <kind>': 'for example key.destroyed',
      '--severity <severity>': 'this one or higher: info, low, medium, high or critical',
      '--actor-id <id>': 'of one token or application',
      '--subject-id <id>': 'about one resource',
      '--request-id <id>': 'of one request',
      ...span,
      '--order <order>': 'newest or oldest',
    },
    columns: {
      AT: 'at',
      WHAT: 'kind',
      WHO: (row) => `${row.actorKind} ${row.actorName}`,
      ABOUT: (row) => `${row.subjectKind} ${row.subjectId}`,
      LABEL: ({ details: { label } }) => (typeof label === 'string' ? label : null),
      FROM: placeOf,
      REQUEST: 'requestId',
    },
  });
};
