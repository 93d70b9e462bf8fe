// The proof that a record is in the audit log, fetched from the service and checked here, in the
// browser.

import { useQuery } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import type { AuditRecord } from '../api/types.ts';
import { type InclusionProof, verifyRecord } from '../api/verify-log.ts';
import { saveFile } from '../ui/fields/secret-once.tsx';
import { Dialog, DialogActions } from '../ui/forms/dialog.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { auditKindNames } from './audit-kinds.ts';

export const ProofDialog = ({ record, onClose }: { record: AuditRecord; onClose: () => void }) => {
  const { sequence } = record;
  const query = useQuery({
    queryKey: ['/api/audit', 'proof', sequence],
    queryFn: async ({ signal }) => {
      const [log, proof] = await Promise.all([
        send<{ readonly verifierKey: string }>({ method: 'GET', path: '/api/audit/log' }, { signal }),
        send<InclusionProof>({ method: 'GET', path: `/api/audit/records/${sequence}/proof` }, { signal }),
      ]);
      return { proof, verdict: await verifyRecord(sequence, proof, log.verifierKey) };
    },
    gcTime: 0,
  });
  return (
    <Dialog title={`Proof of record ${sequence}`} wide onClose={onClose}>
      <p className="mb-4 text-muted">
        {auditKindNames[record.kind]}, by {record.actorName}.
      </p>
      <Async query={query}>
        {({ proof, verdict }) => (
          <div className="space-y-4">
            {typeof verdict === 'string' ? (
              <Notice tone="danger" title="The proof is not valid">
                {verdict} Compare the log with an export that you stored elsewhere, and with the sinks.
              </Notice>
            ) : (
              <Notice tone="info" title="The record is in the log, unchanged">
                Checked in this browser: {proof.hashes.length} hashes lead from the record to the root of the checkpoint
                over {verdict.size.toLocaleString('en-GB')} records. The checkpoint is signed with the key of the log.
              </Notice>
            )}
            <div>
              <p className="mb-1 font-medium">Signed record</p>
              <pre className="rounded-md bg-sunken p-3 text-xs wrap-anywhere whitespace-pre-wrap">{proof.entry}</pre>
            </div>
            <DialogActions>
              <Button
                icon="download"
                onClick={() =>
                  saveFile(`audit-record-${sequence}.json`, `${JSON.stringify(proof, null, 2)}\n`, 'application/json')
                }
              >
                Download proof
              </Button>
              <Button tone="primary" onClick={onClose}>
                Done
              </Button>
            </DialogActions>
          </div>
        )}
      </Async>
    </Dialog>
  );
};
