// A snapshot from a file: imported first, then restored like one that was created here.

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { type ApiCall, sendFile } from '../api/client.ts';
import { snapshotsPath as path } from '../api/paths.ts';
import type { Snapshot } from '../api/types.ts';
import { FileField, TextField } from '../ui/fields/field.tsx';
import { ApiCallView } from '../ui/forms/api-call.tsx';
import { Dialog, DialogActions } from '../ui/forms/dialog.tsx';
import { useAnnounce } from '../ui/page/announce.tsx';
import { Button } from '../ui/page/button.tsx';
import { ProblemView } from '../ui/page/problem-view.tsx';

/** Why a file cannot be sent as a snapshot. A recovery key must never be sent. */
const faultOf = async (file: File): Promise<string | undefined> => {
  const start = await file.slice(0, 8).text();
  if (start === 'DKE-RECV') return 'This file is a recovery key. It was not sent, and never leaves this browser.';
  return start === 'DKE-SNAP' ? undefined : 'This file is not a snapshot.';
};

export const ImportSnapshotDialog = ({ onClose }: { onClose: () => void }) => {
  const client = useQueryClient();
  const navigate = useNavigate();
  const announce = useAnnounce();
  const [file, setFile] = useState<File>();
  const [fault, setFault] = useState<string>();
  const choose = async (chosen: File | undefined): Promise<void> => {
    setFile(undefined);
    const wrong = chosen === undefined ? undefined : await faultOf(chosen);
    setFault(wrong);
    if (wrong === undefined) setFile(chosen);
  };
  const [signer, setSigner] = useState('');
  const call: ApiCall = {
    method: 'POST',
    path: '/api/snapshot-imports',
    ...(signer.trim() === '' ? {} : { query: { signer: signer.trim() } }),
  };
  const bring = useMutation({
    mutationFn: () => sendFile<Snapshot>(call, file ?? new Blob(), { idempotencyKey: crypto.randomUUID() }),
    onSuccess: async ({ id }) => {
      await client.invalidateQueries({ queryKey: [path] });
      announce('Snapshot imported');
      onClose();
      await navigate({ to: '/snapshots/$id/restore', params: { id } });
    },
  });
  return (
    <Dialog title="Restore from a file" onClose={onClose} locked={bring.isPending}>
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (file !== undefined && !bring.isPending) bring.mutate();
        }}
      >
        <p>DKE imports the file and removes the keys from it that were destroyed here. Nothing is restored yet.</p>
        <FileField
          label="Snapshot file"
          help="An exported copy. Its name ends in .dkesnap."
          fault={fault}
          onFile={(chosen) => void choose(chosen)}
        />
        <TextField
          label="Verifier key of the service that created it"
          optional
          mono
          help={
            <>
              Only if another service created it: the key that <code>dke audit log</code> shows there.
            </>
          }
          value={signer}
          onValue={setSigner}
        />
        {bring.error !== null && <ProblemView error={bring.error} compact />}
        <ApiCallView call={call} />
        <DialogActions>
          <Button disabled={bring.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" tone="primary" busy={bring.isPending} disabled={file === undefined}>
            Import snapshot
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
};
