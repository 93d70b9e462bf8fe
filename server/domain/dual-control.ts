// Dual control of a vault: what is done with its keys for good, or takes them out of the service, is done only when m of n others have
// agreed. The rule is kept in the vault's own row, under its authentication code, so that it cannot be removed without the service.

/** `destroy`: of keys, and whatever ends their use for good. `export`, `restore`: of snapshots that hold the vault's keys. */
export const governedActions = ['destroy', 'export', 'restore'] as const;
export type GovernedAction = (typeof governedActions)[number];

export interface DualControlRule {
  /** m: how many must agree, beside the one who asks. */
  readonly required: number;
  /** n: ids of the tokens or users that may approve. Null: all who have the permission. */
  readonly approvers: readonly string[] | null;
  readonly actions: readonly GovernedAction[];
  /** What a database meets that destroys a master key by itself (C_DestroyObject): it does so, or it is refused. */
  readonly databases: 'allowed' | 'refused';
}

/** How many may be asked for. */
export const mostApprovals = 10;

const isWithin = <T>(some: readonly T[], all: readonly T[]): boolean => some.every((each) => all.includes(each));

/** Whether anything is allowed after the change that was not before: then the old rule has a say. Null: no rule. */
export const isWeaker = (before: DualControlRule | null, after: DualControlRule | null): boolean => {
  if (before === null) return false;
  if (after === null) return true;
  const widens =
    before.approvers !== null && (after.approvers === null || !isWithin(after.approvers, before.approvers));
  return (
    widens ||
    after.required < before.required ||
    !isWithin(before.actions, after.actions) ||
    (before.databases === 'refused' && after.databases === 'allowed')
  );
};

export const mayApprove = ({ approvers }: Pick<DualControlRule, 'approvers'>, id: string): boolean =>
  approvers === null || approvers.includes(id);
