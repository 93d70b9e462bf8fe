// Creates a recovery key in this browser: the user downloads its file, and the service gets the
// public half. Nothing is kept here, and a dialog that is closed early has registered nothing.

import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { shortestPassphrase } from '../../../../base/passphrase.ts';
import type { RecoveryKey } from '../api/types.ts';
import { type MadeRecoveryKey, makeRecoveryKey } from '../recovery/new-recovery-key.ts';
import { CheckField, NameField, TextField } from '../ui/fields/field.tsx';
import { saveFile } from '../ui/fields/secret-once.tsx';
import { Dialog, DialogActions } from '../ui/forms/dialog.tsx';
import { CallForm } from '../ui/forms/form.tsx';
import { Button } from '../ui/page/button.tsx';
import { ProblemView } from '../ui/page/problem-view.tsx';

const path = '/api/recovery-keys';
const fileName = 'recovery.key';

export const NewRecoveryKeyDialog = ({ onClose }: { onClose: () => void }) => {
  const [name, setName] = useState('');
  const [passphrase, setPassphrase] = useState('');
  const [again, setAgain] = useState('');
  const [saved, setSaved] = useState(false);
  const [stored, setStored] = useState(false);
  const make = useMutation<MadeRecoveryKey>({
    mutationFn: () => makeRecoveryKey(passphrase),
    onSuccess: () => {
      setPassphrase('');
      setAgain('');
    },
    gcTime: 0,
  });
  const made = make.data;
  if (made === undefined)
    return (
      <Dialog title="Create a recovery key" onClose={onClose}>
        <form
          className="space-y-4"
          onSubmit={(event) => {
            event.preventDefault();
            if (!make.isPending && passphrase === again && passphrase.length >= shortestPassphrase) make.mutate();
          }}
        >
          <p>
            This browser creates the key. You save the private half as a file that a passphrase protects. The service
            gets only the public half. It can seal snapshots to the key, but cannot open them.
          </p>
          <NameField help="Its owner, or where you will store it." value={name} onValue={setName} />
          <TextField
            label="File passphrase"
            type="password"
            autoComplete="new-password"
            minLength={shortestPassphrase}
            help={`At least ${shortestPassphrase} characters. Use five or six words that you use only here.`}
            value={passphrase}
            onValue={setPassphrase}
          />
          <TextField
            label="Confirm passphrase"
            type="password"
            autoComplete="new-password"
            value={again}
            onValue={setAgain}
            fault={again !== '' && again !== passphrase ? 'Passphrases do not match' : undefined}
          />
          {make.error !== null && <ProblemView error={make.error} compact />}
          <DialogActions>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" tone="primary" busy={make.isPending}>
              Create key
            </Button>
          </DialogActions>
        </form>
      </Dialog>
    );
  return (
    <Dialog title="Save the recovery key" onClose={onClose} locked wide>
      <CallForm<RecoveryKey>
        call={{ method: 'POST', path, body: { name, publicKey: made.publicKey } }}
        creates
        submitLabel="Register public half"
        submitDisabled={!stored}
        onCancel={onClose}
        renews={[path]}
        done={`Recovery key “${name}” registered`}
      >
        {() => (
          <>
            <p>
              The file exists only here, and is lost when this dialog closes. Without the file and its passphrase, no
              snapshot can be opened. Keep two copies, in two places, and the passphrase in a third.
            </p>
            <Button
              icon="download"
              tone={saved ? 'plain' : 'primary'}
              onClick={() => {
                saveFile(fileName, made.file, 'application/octet-stream');
                setSaved(true);
              }}
            >
              Save {fileName}
            </Button>
            <CheckField
              label="I have stored the file and the passphrase where the service cannot reach them"
              checked={stored}
              disabled={!saved}
              onValue={setStored}
            />
          </>
        )}
      </CallForm>
    </Dialog>
  );
};
