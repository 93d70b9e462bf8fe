// Dual control of a vault: which actions need approval, and how many approvers. The service refuses
// a rule that cannot be satisfied, with a dry run before anything is changed.

import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { type ApiCall, send } from '../api/client.ts';
import { vaultsPath } from '../api/paths.ts';
import type { DualControlRule, Vault, VaultDualControl } from '../api/types.ts';
import { useMay } from '../session/may.ts';
import { CheckField, SelectField } from '../ui/fields/field.tsx';
import { EditDialog, type Fields } from '../ui/forms/edit-dialog.tsx';
import { Button } from '../ui/page/button.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { ProblemView } from '../ui/page/problem-view.tsx';

const actions = [
  ['destroy', 'Destroy keys or end their use permanently'],
  ['export', 'Export snapshots that contain its keys'],
  ['restore', 'Restore snapshots that contain its keys'],
] as const;

/** Every action removed removes the rule. */
type RuleBody = Omit<DualControlRule, 'actions'> & { readonly actions: readonly DualControlRule['actions'][number][] };

const newRule: RuleBody = {
  required: 1,
  approvers: null,
  actions: ['destroy', 'export', 'restore'],
  databases: 'refused',
};

const RuleFields = ({
  path,
  resource: { rule: before },
  body,
  onBody,
  onReady,
  fault,
}: Fields<VaultDualControl, RuleBody> & { path: string }) => {
  const call = ruleCall(path, body);
  const removes = body.actions.length === 0;
  const plan = useQuery({
    queryKey: [path, 'plan', call],
    queryFn: () => send<VaultDualControl>({ ...call, query: { dryRun: true } }),
    retry: false,
    staleTime: 0,
    gcTime: 0,
    enabled: !removes || before !== null,
  });
  const isReady = plan.error === null && (!removes || before !== null);
  useEffect(() => onReady(isReady), [onReady, isReady]);
  return (
    <>
      <p className="text-muted">
        The requester cannot do these actions alone. A stricter rule applies at once. A weaker rule needs the approvals
        that the current rule requires.
      </p>
      <fieldset className="space-y-2">
        <legend className="mb-1 font-medium">Actions that need approval</legend>
        {actions.map(([action, text]) => (
          <CheckField
            key={action}
            label={text}
            checked={body.actions.includes(action)}
            onValue={(on) =>
              onBody({
                ...body,
                actions: actions
                  .map(([name]) => name)
                  .filter((name) => (name === action ? on : body.actions.includes(name))),
              })
            }
          />
        ))}
      </fieldset>
      <SelectField
        label="Required approvals"
        value={String(body.required)}
        onValue={(required) => onBody({ ...body, required: Number(required) })}
        fault={fault('required')}
        disabled={removes}
        choices={Array.from({ length: 5 }, (_, index) => ({ value: String(index + 1), text: String(index + 1) }))}
      />
      <CheckField
        label="Prevent databases from destroying master keys"
        help="Otherwise, anyone who can create an access_guid can destroy them alone, with C_DestroyObject."
        checked={body.databases !== 'allowed'}
        disabled={removes}
        onValue={(refuse) => onBody({ ...body, databases: refuse ? 'refused' : 'allowed' })}
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
  );
};

const ruleCall = (path: string, body: RuleBody): ApiCall & { readonly method: 'PUT' | 'DELETE' } =>
  body.actions.length === 0 ? { method: 'DELETE', path } : { method: 'PUT', path, body };

export const DualControlDialog = ({ vault, onClose }: { vault: Vault; onClose: () => void }) => {
  const path = `${vaultsPath}/${encodeURIComponent(vault.id)}/dual-control`;
  return (
    <EditDialog<VaultDualControl, RuleBody>
      title={`Dual control of “${vault.name}”`}
      wide
      path={path}
      bodyOf={({ rule }) => rule ?? newRule}
      callOf={(body) => ruleCall(path, body)}
      names={{
        required: 'Required approvals',
        approvers: 'Approvers',
        actions: 'Actions that need approval',
        databases: 'Databases may destroy',
      }}
      submitLabel={({ actions: governed }) => (governed.length === 0 ? 'Remove rule' : 'Set rule')}
      onClose={onClose}
      renews={[vaultsPath]}
      done={`Dual control of “${vault.name}” changed`}
    >
      {(fields) => <RuleFields {...fields} path={path} />}
    </EditDialog>
  );
};

export const DualControlButton = ({ vault }: { vault: Vault }) => {
  const [open, setOpen] = useState(false);
  const text = vault.dualControl === null ? 'None' : `${vault.dualControl.required} must approve`;
  if (!useMay()('dual-control:manage')) return text;
  return (
    <>
      <Button tone="quiet" aria-label={`${text}: dual control of ${vault.name}`} opens onClick={() => setOpen(true)}>
        {text}
      </Button>
      {open && <DualControlDialog vault={vault} onClose={() => setOpen(false)} />}
    </>
  );
};
