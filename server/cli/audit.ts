// `dke audit` and `dke status`: what happened, whether the log of it is whole, and how the service is.

import { createReadStream, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import {
  type Checkpoint,
  parseCheckpoint,
  parseVerifierKey,
  type Verifier,
  verifyLogNote,
} from '../base/checkpoint.ts';
import type { AuditRecord } from '../fronts/contract/api/audit.ts';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { verifyAuditLog } from './audit-verify.ts';
import { action, type GlobalOptions, type Paging, paged } from './caller.ts';
import { CommandError } from './exit-codes.ts';
import { exportTo } from './files.ts';
import { openOutput } from './output.ts';
import { gatherMinutes, verifyRequestLog } from './requests-verify.ts';

const readText = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new CommandError('permission', `${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
};

/** A verifier key, or a file that holds one. */
const readVerifier = (text: string): Verifier => {
  const verifier = parseVerifierKey(text) ?? parseVerifierKey(text.includes('+') ? '' : readText(text));
  if (verifier === null)
    throw new CommandError('config', `${text} is no verifier key`, {
      hint: 'it is what dke audit log shows as verifierKey: NAME+ID+KEY; keep it where the service cannot change it',
    });
  return verifier;
};

/** A note that was kept elsewhere. Who signed it shows when the log has told which keys it had. */
const readCheckpoint = (path: string): { readonly path: string; readonly note: string; readonly is: Checkpoint } => {
  const note = readText(path);
  const is = parseCheckpoint(note);
  if (is === null) throw new CommandError('checks-failed', `${path} is not a checkpoint`);
  return { path, note, is };
};

async function* readLines(path: string): AsyncGenerator<string> {
  const input = path === '-' ? process.stdin : createReadStream(path, 'utf8');
  try {
    // Line feeds only end a line: what else a text may hold is escaped in it.
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    throw new CommandError('permission', `${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** The process and host of a database; the address of everybody else. */
const placeOf = ({ details: { process: program, host }, peer }: AuditRecord): string | null =>
  typeof program === 'string' && typeof host === 'string' ? `${program} on ${host}` : peer;

interface VerifyOptions {
  readonly key: string;
  readonly checkpoint?: readonly string[];
  readonly requests?: string;
}

const addVerification = (audit: Command): void => {
  audit
    .command('log')
    .description('Shows the key that signs the audit log. Keep verifierKey where the service cannot change it.')
    .action(
      action(async ({ call, output }) => {
        output.record(await call(apiRoutes.audit.log));
      }),
    );
  paged(audit.command('checkpoints').description('Lists the checkpoints of the audit log, newest first.')).action(
    action<Paging>(async ({ call, output }, query) => {
      output.list(await call(apiRoutes.audit.checkpoints, { query: { ...query } }), [
        ['SIZE', (row) => row.size],
        ['AT', (row) => row.at],
        ['ROOT', (row) => row.note.split('\n')[2]],
      ]);
    }),
  );
  audit
    .command('sinks')
    .description('Shows where the audit log and the request log are forwarded to, and how far each sink is behind.')
    .action(
      action(async ({ call, output }) => {
        output.list(await call(apiRoutes.audit.sinks), [
          ['NAME', (row) => row.name],
          ['TYPE', (row) => row.type],
          ['LOG', (row) => row.log],
          ['TARGET', (row) => row.target],
          ['LAST RECORD', (row) => row.forwarded],
          ['BEHIND', (row) => row.lag],
          ['LOST', (row) => row.lost],
          ['DELIVERED', (row) => row.deliveredAt],
          ['FAILING SINCE', (row) => row.failure?.since],
          ['WHY', (row) => row.failure?.message],
        ]);
      }),
    );
  audit
    .command('rotate-key')
    .description(
      'Gives the audit log a new signing key. The former key signs the record of it, and is removed; the root key is rotated too. ' +
        'Keep the new verifierKey, and back up the root key again.',
    )
    .action(
      action(async ({ call, output }) => {
        output.record(await call(apiRoutes.audit.rotateKey));
      }),
    );
  audit
    .command('prove <sequence>')
    .description('Shows that a record is in the log: its text, a checkpoint, and the hashes between (RFC 9162).')
    .action(
      action(async ({ call, output }, _, sequence = '') => {
        output.record(await call(apiRoutes.audit.prove, { path: { sequence } }));
      }),
    );
  audit
    .command('migrations [application]')
    .description(
      'Lists key migration activity: master keys that databases made, and the uses that followed, newest first.',
    )
    .option('--from <time>', 'RFC 3339, inclusive')
    .option('--to <time>', 'RFC 3339, exclusive')
    .option('--limit <count>', 'at most so many')
    .option('--after <cursor>', 'go on behind this one')
    .action(
      action<Paging & { readonly from?: string; readonly to?: string }>(
        async ({ call, output, resolve }, query, application) => {
          const applicationId = application === undefined ? undefined : await resolve('TDE application', application);
          output.list(await call(apiRoutes.audit.migrations, { query: { ...query, applicationId } }), [
            ['AT', (row) => row.at],
            ['WHAT', (row) => row.what],
            ['APPLICATION', (row) => row.applicationName],
            ['FROM', (row) => (row.process === null ? row.host : `${row.process} on ${row.host}`)],
            ['LABEL', (row) => row.label],
            [
              'USES',
              (row) =>
                Object.entries(row.uses)
                  .map(([use, count]) => `${use} ${count}`)
                  .join(', ') || null,
            ],
            ['FAILED', (row) => row.failures],
          ]);
        },
      ),
    );
  audit
    .command('export')
    .description(
      "Writes the whole log with its checkpoints, one a line; with --tenant that tenant's part, which verifies by itself. Audited.",
    )
    .option('--out <file>', 'into this new file')
    .action(
      action<{ readonly out?: string }>(({ stream, tenant }, { out }) =>
        exportTo(out, (into) =>
          stream(tenant === undefined ? apiRoutes.audit.export : apiRoutes.audit.exportTenant, {}, into),
        ),
      ),
    );
  audit
    .command('verify <file>')
    .description(
      'Checks an export offline: every record, its place, every checkpoint. Needs no service and no token. - reads ' +
        'standard input.',
    )
    .requiredOption('--key <key>', 'verifierKey of dke audit log, or a file with it')
    .option(
      '--checkpoint <file...>',
      'a checkpoint that was kept elsewhere (beside the root key, in a sink): shows what was cut off at the end',
    )
    .option(
      '--requests <file>',
      'the request log too (dke endpoint requests --export ndjson, before the audit log was exported): against its hashes',
    )
    .action(async (file: string, { key, checkpoint = [], requests }: VerifyOptions, command: Command) => {
      const output = openOutput(command.optsWithGlobals<GlobalOptions>().output, (text) => {
        process.stdout.write(text);
      });
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
      const ofRequests =
        requests === undefined ? undefined : await verifyRequestLog(readLines(requests), minutes.end());
      output.record({
        log: verifier.name,
        ...counts,
        ...(ofRequests === undefined ? {} : { requestLog: ofRequests }),
        sound: findings.length + (ofRequests?.findings.length ?? 0) === 0,
        findings,
      });
      if (findings.length === 0 && ofRequests !== undefined && ofRequests.findings.length > 0)
        throw new CommandError(
          'checks-failed',
          `the request log was changed, or is not complete: ${ofRequests.findings[0]}`,
          {
            hint: 'it must be the whole log, as ndjson, exported before the audit log; then keep both files, and compare them with other exports',
          },
        );
      if (findings.length === 0) return;
      throw new CommandError('checks-failed', `the log is not what was signed: ${findings[0]}`, {
        hint: 'keep this file; compare it with the sinks and with another export to learn what was changed, and when',
      });
    });
};

export const addAudit = (program: Command): void => {
  const audit = program.command('audit').summary('the audit log');
  addVerification(audit);
  paged(audit.command('list').description('Lists audit records, newest first.'))
    .option('--kind <kind>', 'for example key.destroyed')
    .option('--actor-id <id>', 'of one token or application')
    .option('--subject-id <id>', 'about one resource')
    .option('--request-id <id>', 'of one request')
    .option('--from <time>', 'RFC 3339, inclusive')
    .option('--to <time>', 'RFC 3339, exclusive')
    .option('--order <order>', 'newest or oldest')
    .action(
      action<Paging & Readonly<Record<string, string>>>(async ({ call, output }, query) => {
        output.list(await call(apiRoutes.audit.list, { query: { ...query } }), [
          ['AT', (row) => row.at],
          ['WHAT', (row) => row.kind],
          ['WHO', (row) => `${row.actorKind} ${row.actorName}`],
          ['ABOUT', (row) => `${row.subjectKind} ${row.subjectId}`],
          ['LABEL', ({ details: { label } }) => (typeof label === 'string' ? label : null)],
          ['FROM', placeOf],
          ['REQUEST', (row) => row.requestId],
        ]);
      }),
    );
};

export const addStatus = (program: Command): void => {
  program
    .command('status')
    .summary("the service's state")
    .description('Shows version, health, storage, erasure and locked memory.')
    .action(
      action(async ({ call, output }) => {
        output.record(await call(apiRoutes.status.get));
      }),
    );
};
