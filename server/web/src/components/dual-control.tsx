// Dual control of a vault: which actions need approval, and how many approvers. The service refuses a rule that cannot be
// satisfied, with a dry run before anything is changed.

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type ApiCall, send } from '../api/client.ts';
import type { DualControlRule, Vault } from '../api/types.ts';
import { Button } from './button.tsx';
import { CheckField, SelectField } from './field.tsx';
import { FormDialog } from './form.tsx';
import { Notice } from './notice.tsx';
import { ProblemView } from './problem-view.tsx';
import { vaultsPath } from './vaults.ts';

const actions = [
  ['destroy', 'Destroy keys or end their use permanently'],
  ['export', 'Export snapshots that contain its keys'],
  ['restore', 'Restore snapshots that contain its keys'],
] as const;

interface VaultDualControl {
  readonly rule: DualControlRule | null;
  readonly approvers: readonly { readonly id: string; readonly name: string }[];
  readonly plan?: { readonly rules: readonly unknown[] };
}

export const DualControlDialog = ({ vault, onClose }: { vault: Vault; onClose: () => void }) => {
  const before = vault.dualControl;
  const [required, setRequired] = useState(String(before?.required ?? 1));
  const [governed, setGoverned] = useState<readonly DualControlRule['actions'][number][]>(
    before?.actions ?? ['destroy', 'export', 'restore'],
  );
  const [refuse, setRefuse] = useState(before?.databases !== 'allowed');
  const path = `${vaultsPath}/${encodeURIComponent(vault.id)}/dual-control`;
  const removes = governed.length === 0;
  const call: ApiCall & { method: 'PUT' | 'DELETE' } = removes
    ? { method: 'DELETE', path }
    : {
        method: 'PUT',
        path,
        body: {
          required: Number(required),
          approvers: before?.approvers ?? null,
          actions: governed,
          databases: refuse ? 'refused' : 'allowed',
        },
      };
  const plan = useQuery({
    queryKey: [vaultsPath, vault.id, 'dual-control', call],
    queryFn: () => send<VaultDualControl>({ ...call, query: { dryRun: true } }),
    retry: false,
    staleTime: 0,
    gcTime: 0,
    enabled: !removes || before !== null,
  });
  return (
    <FormDialog<unknown>
      title={`Dual control of “${vault.name}”`}
      wide
      call={call}
      submitLabel={removes ? 'Remove rule' : 'Set rule'}
      submitDisabled={plan.error !== null || (removes && before === null)}
      onCancel={onClose}
      renews={[vaultsPath]}
      done={`Dual control of “${vault.name}” changed`}
    >
      {(fault) => (
        <>
          <p className="text-muted">
            The requester cannot do these actions alone. A stricter rule applies at once. A weaker rule needs the
            approvals that the current rule requires.
          </p>
          <fieldset className="space-y-2">
            <legend className="mb-1 font-medium">Actions that need approval</legend>
            {actions.map(([action, text]) => (
              <CheckField
                key={action}
                label={text}
                checked={governed.includes(action)}
                onValue={(on) =>
                  setGoverned(
                    actions.map(([name]) => name).filter((name) => (name === action ? on : governed.includes(name))),
                  )
                }
              />
            ))}
          </fieldset>
          <SelectField
            label="Required approvals"
            value={required}
            onValue={setRequired}
            fault={fault('required')}
            disabled={removes}
            choices={Array.from({ length: 5 }, (_, index) => ({ value: String(index + 1), text: String(index + 1) }))}
          />
          <CheckField
            label="Prevent databases from destroying master keys"
            help="Otherwise, anyone who can create an access_guid can destroy them alone, with C_DestroyObject."
            checked={refuse}
            disabled={removes}
            onValue={setRefuse}
          />
          {plan.error !== null && <ProblemView error={plan.error} compact />}
          {plan.data !== undefined && (
            <Notice
              tone="info"
              title={
                plan.data.plan !== undefined && plan.data.plan.rules.length > 0
                  ? 'This change requires approval under the current rule'
                  : 'This applies at once'
              }
            >
              {plan.data.approvers.length === 0
                ? 'There are no eligible approvers.'
                : `Eligible approvers: ${plan.data.approvers.map(({ name }) => name).join(', ')}.`}
            </Notice>
          )}
        </>
      )}
    </FormDialog>
  );
};

export const DualControlButton = ({ vault }: { vault: Vault }) => {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button
        tone="quiet"
        aria-label={`${vault.dualControl === null ? 'None' : `${vault.dualControl.required} must approve`}: dual control of ${vault.name}`}
        onClick={() => setOpen(true)}
      >
        {vault.dualControl === null ? 'None' : `${vault.dualControl.required} must approve`}
      </Button>
      {open && <DualControlDialog vault={vault} onClose={() => setOpen(false)} />}
    </>
  );
};
