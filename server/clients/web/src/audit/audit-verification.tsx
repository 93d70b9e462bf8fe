// Verification of the audit log: its key, its newest checkpoint, a check of the whole log in this
// browser, and the checkpoints.

import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiProblem, formatTarget, send } from '../api/client.ts';
import type { AuditCheckpoint } from '../api/types.ts';
import { type LogVerdict, verifyExport } from '../api/verify-log.ts';
import { Async } from '../ui/page/async.tsx';
import { Button, buttonClass } from '../ui/page/button.tsx';
import { Copyable, CopyButton } from '../ui/page/copy.tsx';
import { Icon } from '../ui/page/icon.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { EmptyState, ProblemView } from '../ui/page/problem-view.tsx';
import { Time } from '../ui/page/time.tsx';
import { ListView, useList } from '../ui/table/list-view.tsx';
import { AuditTabs } from './audit-tabs.tsx';

interface AuditLog {
  readonly origin: string;
  readonly verifierKey: string;
  readonly size: number;
  readonly checkpoint: AuditCheckpoint | null;
}

const readExport = async (verifierKey: string, onProgress: (records: number) => void): Promise<LogVerdict> => {
  const answer = await fetch('/api/audit/export', { credentials: 'same-origin', cache: 'no-store' });
  if (!answer.ok || answer.body === null) {
    const problem = (await answer.json().catch(() => ({}))) as {
      readonly code?: string;
      readonly title?: string;
      readonly detail?: string;
      readonly hint?: string;
    };
    throw new ApiProblem({
      status: answer.status,
      code: problem.code ?? 'unexpected-answer',
      title: problem.title ?? 'The log cannot be read',
      detail: problem.detail ?? 'The server gave no details.',
      hint: problem.hint,
    });
  }
  return verifyExport(answer.body, verifierKey, onProgress);
};

const Verdict = ({ verdict }: { verdict: LogVerdict }) =>
  verdict.finding === null ? (
    <Notice tone="info" title="The log is valid">
      {verdict.records.toLocaleString('en-GB')} records match {verdict.checkpoints.toLocaleString('en-GB')} signed
      checkpoints, from the first to the last.
    </Notice>
  ) : (
    <Notice tone="danger" title="The log does not match its signatures">
      {verdict.finding} Export the log as it is now, and compare it with the records at the sinks.
    </Notice>
  );

const VerifyNow = ({ log }: { log: AuditLog }) => {
  const [records, setRecords] = useState(0);
  const verify = useMutation({ mutationFn: () => readExport(log.verifierKey, setRecords) });
  return (
    <div className="space-y-4">
      <Facts
        items={[
          ['Records', log.size.toLocaleString('en-GB')],
          [
            'Newest checkpoint',
            log.checkpoint === null ? (
              'none yet'
            ) : (
              <span key="checkpoint">
                {log.checkpoint.size.toLocaleString('en-GB')} records, <Time value={log.checkpoint.at} distance />
              </span>
            ),
          ],
          [
            'Name of the log',
            <code key="origin" className="wrap-anywhere">
              {log.origin}
            </code>,
          ],
        ]}
      />
      <div>
        <p className="text-xs text-muted">Verifier key. Store it separately, and check exports with it.</p>
        <Copyable value={log.verifierKey} label="verifier key" />
      </div>
      {verify.data !== undefined && <Verdict verdict={verify.data} />}
      {verify.error !== null && <ProblemView error={verify.error} compact />}
      <div className="flex flex-wrap items-center gap-2">
        <Button tone="primary" icon="check" busy={verify.isPending} onClick={() => verify.mutate()}>
          Verify log now
        </Button>
        <a className={buttonClass()} href="/api/audit/export" download>
          <Icon name="download" />
          Export
        </a>
        <a className={buttonClass()} href={formatTarget({ path: '/api/audit/tenant-export' })} download>
          <Icon name="download" />
          Export this tenant&apos;s part
        </a>
        <span role="status" className="text-muted">
          {verify.isPending && `${records.toLocaleString('en-GB')} records read…`}
        </span>
      </div>
      <p className="text-xs text-muted">
        This browser reads an export and computes every hash. The export is audited. On another machine:{' '}
        <code>dke audit verify audit.ndjson --key verifier-key</code>.
      </p>
    </div>
  );
};

const Checkpoints = () => {
  const list = useList<AuditCheckpoint>('/api/audit/checkpoints');
  return (
    <Panel
      title="Checkpoints"
      description="Signed states of the log. With a copy that you store elsewhere, you can detect records that were removed later."
      flush
    >
      <ListView
        list={list}
        endless
        caption="Checkpoints"
        rowKey={({ size }) => String(size)}
        columns={[
          { key: 'size', header: 'Records', names: true, cell: ({ size }) => size.toLocaleString('en-GB') },
          { key: 'at', header: 'Signed', cell: ({ at }) => <Time value={at} seconds /> },
          {
            key: 'note',
            header: 'Note',
            end: true,
            actions: true,
            cell: ({ note, size }) => <CopyButton value={note} label={`checkpoint of ${size} records`} />,
          },
        ]}
        detail={({ note }) => <pre className="text-xs wrap-anywhere whitespace-pre-wrap">{note}</pre>}
        empty={
          <EmptyState title="No checkpoints yet">
            The first checkpoint is created within a minute of the first record.
          </EmptyState>
        }
      />
    </Panel>
  );
};

export const AuditVerificationPage = () => {
  const log = useQuery({
    queryKey: ['/api/audit/log'],
    queryFn: ({ signal }) => send<AuditLog>({ method: 'GET', path: '/api/audit/log' }, { signal }),
  });
  return (
    <Page
      title="Verification"
      description="The records are the leaves of a tree whose root is signed. Tampering is detectable, even by the operator of the service."
      crumbs={[{ text: 'Audit log', to: '/audit' }]}
    >
      <AuditTabs />
      <Panel title="The log">
        <Async query={log}>{(data) => <VerifyNow log={data} />}</Async>
      </Panel>
      <Checkpoints />
    </Page>
  );
};
