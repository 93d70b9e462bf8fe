// Dual control of a vault: an operation that destroys its keys, or takes them out of the service,
// runs only after m of n other people have approved it. The rule is stored in the vault's own row,
// under its authentication code, so that it cannot be removed without the service.

/**
 * `destroy`: keys, and everything that ends their use permanently. `export`, `restore`: snapshots
 * that contain the vault's keys.
 */
export const governedActions = ['destroy', 'export', 'restore'] as const;
export type GovernedAction = (typeof governedActions)[number];

export interface DualControlRule {
  /** m: how many people must approve, in addition to the one who requests it. */
  readonly required: number;
  /** n: ids of the tokens or users that may approve. Null: all who have the permission. */
  readonly approvers: readonly string[] | null;
  readonly actions: readonly GovernedAction[];
  /**
   * What happens when a database itself destroys a master key (C_DestroyObject): it is allowed or
   * refused.
   */
  readonly databases: 'allowed' | 'refused';
}

/**
 * Who can create an access_guid could otherwise destroy alone what the rule lets no one else
 * destroy alone: a database that is not named is refused where the rule is about destruction.
 */
export const databasesUnder = (actions: readonly GovernedAction[]): DualControlRule['databases'] =>
  actions.includes('destroy') ? 'refused' : 'allowed';

/** How many may be asked for. */
export const mostApprovals = 10;

const isWithin = <T>(some: readonly T[], all: readonly T[]): boolean => some.every((each) => all.includes(each));

/**
 * Whether anything is allowed after the change that was not before: then the old rule has a say.
 * Null: no rule.
 */
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
