// Moves a TDE application to another group, with its keys and other objects. Nothing is copied and
// no record is sealed again: what an object's group and a key's vault are in their rows. The
// consequences are computed from the same reads, before and in the transaction.

import { otherWork } from '../../base/next-turn.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { TenantActor } from '../../domain/actor.ts';
import { isWeaker } from '../../domain/dual-control.ts';
import { isVaultOpen } from '../../domain/key-policy.ts';
import { largestPageSize } from '../../domain/page.ts';
import type { ApplicationMove, TdeApplication, TdeGroup } from '../../domain/tde.ts';
import type { Ports } from '../../ports/ports.ts';
import type { Repositories } from '../../ports/store.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';
import type { Window } from '../../ports/window.ts';
import type { Approvals, CarriedOut } from '../approvals/governed-operation.ts';
import { findApplication, findGroup, findVault } from '../shared/find.ts';
import { takerOfLabel } from '../shared/labels.ts';
import { nameFromLabel } from '../shared/names.ts';
import { byId, each, fewAtOnce } from '../shared/paging.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { ApplicationOperations } from './applications-operations.ts';

const mostNamed = 100;
/** Objects that are placed before others are served: they are written in a few statements. */
const mostAtOnce = 200;

const objectsOf = async (from: Repositories, applicationId: string): Promise<readonly StoredObject[]> => {
  const all: StoredObject[] = [];
  for (;;) {
    const page = await from.objects.listByApplication(applicationId, all.at(-1)?.handle ?? 0, largestPageSize);
    all.push(...page);
    if (page.length < largestPageSize) return all;
  }
};
const isLiveKey = ({ class: objectClass, destroyedAt }: StoredObject): boolean =>
  destroyedAt === null && (objectClass === 'secret-key' || objectClass === 'private-key');

/** The applications of a group. */
export const membersOf = async (
  from: Pick<Repositories, 'applications'>,
  tenantId: string,
  groupId: string,
): Promise<readonly TdeApplication[]> => {
  const all: TdeApplication[] = [];
  const list = (window: Window) => from.applications.list(tenantId, { groupId }, window);
  for await (const application of each(list, byId, fewAtOnce)) all.push(application);
  return all;
};

interface Planned {
  readonly move: ApplicationMove;
  readonly application: TdeApplication;
  readonly target: TdeGroup;
  readonly objects: readonly StoredObject[];
}

const plan = async (from: Repositories, tenantId: string, id: string, groupId: string): Promise<Planned> => {
  const application = await findApplication(from, tenantId, id);
  const source = await findGroup(from, tenantId, application.groupId);
  const target = await findGroup(from, tenantId, groupId);
  if (target.id === source.id) throw new ServiceError('conflict', 'the application is already in this group');
  if (target.tenantId !== source.tenantId) throw new ServiceError('conflict', 'the group belongs to another tenant');
  if (!isVaultOpen(await findVault(from, tenantId, target.vaultId)))
    throw new ServiceError('conflict', "the group's vault is not enabled", {
      hint: 'enable it first: until then, the application could not use its keys there',
    });
  const objects = await objectsOf(from, id);
  const keys = objects.filter(isLiveKey);
  const taken: string[] = [];
  const labelled = new Set(await from.objects.labelledAsIn(id, groupId));
  for (const key of objects)
    if (labelled.has(key.handle) && (await takerOfLabel(from, { ...key, groupId })) !== undefined)
      taken.push(nameFromLabel(key.label));
  const leaves: ApplicationMove['leaves'][number][] = [];
  for (const other of await membersOf(from, tenantId, source.id))
    if (other.id !== id)
      leaves.push({
        id: other.id,
        name: other.name,
        keys: await from.objects.countKeys(other.id),
        instances: await from.instances.list(other.id),
      });
  const joins: ApplicationMove['joins'][number][] = [];
  for (const other of await membersOf(from, tenantId, target.id))
    joins.push({ id: other.id, name: other.name, keys: await from.objects.countKeys(other.id) });
  return {
    application,
    target,
    objects,
    move: {
      from: { id: source.id, name: source.name },
      to: { id: target.id, name: target.name },
      keys: keys.length,
      objects: objects.filter(({ destroyedAt }) => destroyedAt === null).length - keys.length,
      conflictingLabels: taken.slice(0, mostNamed),
      keysLost: leaves.reduce((sum, other) => sum + other.keys, 0),
      leaves,
      joins,
      instances: await from.instances.list(id),
    },
  };
};

const move =
  ({ directory }: Pick<Ports, 'directory'>) =>
  async (
    tx: Repositories,
    actor: TenantActor,
    id: string,
    groupId: string,
  ): Promise<CarriedOut<{ readonly application: TdeApplication; readonly move: ApplicationMove }>> => {
    const { application: before, target, objects, move: planned } = await plan(tx, actor.tenantId, id, groupId);
    if (planned.conflictingLabels.length > 0)
      throw new ServiceError('label-exists', 'labels of its keys are already in use in the new group', {
        hint: 'the label of a master key must be unique in its group: see conflictingLabels in the answer to dryRun=true',
      });
    const after: TdeApplication = { ...before, groupId: target.id };
    await tx.applications.update(after);
    // Destroyed ones go along: what they are a tombstone of stays the application's.
    for (let at = 0; at < objects.length; at += mostAtOnce) {
      const part = objects.slice(at, at + mostAtOnce);
      const places = part.map((each) => ({
        ...{ id: each.id, handle: each.handle },
        ...{ groupId: target.id, vaultId: target.vaultId },
      }));
      if (!(await tx.tenantRows.place(places)))
        throw new ServiceError('key-tampered', 'the stored record of one of its objects was changed from outside', {
          hint: 'compare the database with a backup; the audit log has an alarm that names the record',
        });
      await otherWork();
    }
    const { from, to, keys, keysLost, leaves, joins } = planned;
    await recordEvent(tx, 'application.moved', actor, about('application', before), {
      name: before.name,
      fromGroupId: from.id,
      fromGroup: from.name,
      toGroupId: to.id,
      toGroup: to.name,
      keys,
      objects: planned.objects,
      keysLost,
      leaves: leaves.slice(0, mostNamed).map(({ name }) => name),
      joins: joins.slice(0, mostNamed).map(({ name }) => name),
    });
    return {
      answer: { application: after, move: planned },
      afterCommit: () =>
        directory.renew({
          applications: [id],
          objects: objects.map(({ handle }) => handle),
          keys: objects.map((object) => object.id),
        }),
    };
  };

export const moveApplication = (
  ports: Pick<Ports, 'store' | 'directory' | 'usage'>,
  { withApproval }: Pick<Approvals, 'withApproval'>,
): Pick<ApplicationOperations, 'planMove' | 'move' | 'moveNeeds'> => {
  const { store, usage } = ports;
  const governed = withApproval('application.move', {
    permission: 'applications:manage',
    plan: async (from, tenantId, { id, groupId }: { readonly id: string; readonly groupId: string }) => {
      const { application, target, objects, move: planned } = await plan(from, tenantId, id, groupId);
      const { vaultId } = await findGroup(from, tenantId, application.groupId);
      const source = await findVault(from, tenantId, vaultId);
      const rule = (await findVault(from, tenantId, target.vaultId)).dualControl;
      return {
        tenantId: application.tenantId,
        subject: { kind: 'application', id, name: application.name },
        // Where a rule as strict applies to its keys, no approval is needed.
        vaults: isWeaker(source.dualControl, rule) ? [source] : [],
        impact: { keys: planned.keys, keysLost: planned.keysLost },
        named: {
          from: { kind: 'group', ...planned.from },
          to: { kind: 'group', ...planned.to },
          leaves: planned.leaves.map((other) => ({ kind: 'application', id: other.id, name: other.name })),
          joins: planned.joins.map((other) => ({ kind: 'application', id: other.id, name: other.name })),
        },
        state: { groupId: application.groupId, newestObject: objects.at(-1)?.handle ?? 0, objects: planned.objects },
      };
    },
    carryOut: (tx, actor, { id, groupId }) => move(ports)(tx, actor, id, groupId),
  });
  return {
    planMove: async ({ tenantId }, id, groupId) => {
      await usage.flush(false);
      return (await plan(store.read, tenantId, id, groupId)).move;
    },
    moveNeeds: (actor, id, groupId) => governed.plan(actor, { id, groupId }),
    move: (actor, id, groupId) => governed.run(actor, { id, groupId }),
  };
};
