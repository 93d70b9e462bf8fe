// Which token objects an application sees: those of its group. It owns those it made; only the
// owner changes or destroys.

import { ServiceError } from '../../base/service-error.ts';
import type { AuditValue } from '../../domain/audit-event.ts';
import type { Ports } from '../../ports/ports.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';
import type { LoadedObject } from '../../ports/working-memory.ts';
import { nameFromLabel } from '../shared/names.ts';
import type { TdeCaller, VisibleObject } from './tde-operations.ts';

export const isVisible = (caller: TdeCaller, object: StoredObject): boolean =>
  object.groupId === caller.application.groupId && object.tenantId === caller.application.tenantId;

export const show = (
  caller: TdeCaller,
  { content: _content, destroyedAt: _destroyed, ...object }: StoredObject,
): VisibleObject => ({
  ...object,
  owned: object.applicationId === caller.application.id,
});

/** The part of an audit record that tells which instance it was. */
export const instanceDetails = (caller: TdeCaller): { appId: AuditValue; host: AuditValue; process: AuditValue } => ({
  appId: caller.appId,
  host: caller.instance.host.slice(0, 255),
  process: caller.instance.process.slice(0, 255),
});

/** Secret and private keys are keys of the service; whatever else is on the token is an object. */
const subjectKindOf = ({ class: objectClass }: StoredObject): 'key' | 'object' =>
  objectClass === 'secret-key' || objectClass === 'private-key' ? 'key' : 'object';

type Needs = Pick<Ports, 'store' | 'directory' | 'usage'>;

/**
 * Records that policy refused a use: the first of its kind at once, repeats counted
 * (ports/usage-log.ts).
 */
export const recordDenial = (
  { usage }: Pick<Needs, 'usage'>,
  caller: TdeCaller,
  object: StoredObject,
  operation: string,
  reason: string,
): Promise<void> =>
  usage.denied({
    actor: caller.actor,
    tenantId: object.tenantId,
    subject: { kind: subjectKindOf(object), id: object.id },
    details: {
      name: nameFromLabel(object.label),
      label: object.label,
      applicationId: caller.application.id,
      ...instanceDetails(caller),
      operation,
      reason,
    },
  });

/**
 * A label that has no key in the caller's group, but one in another: not found, as any other, and
 * recorded.
 */
export const recordSearchElsewhere = async (needs: Needs, caller: TdeCaller, label: string): Promise<void> => {
  const hidden = await needs.directory.findElsewhere(caller.application.tenantId, caller.application.groupId, label);
  if (hidden !== undefined) await recordDenial(needs, caller, hidden, 'find', 'another group');
};

/**
 * The application as it is at this moment: it may have been moved or disabled since the request was
 * admitted.
 */
export const requireStillMember = (
  { directory }: Pick<Needs, 'directory'>,
  { application: { id } }: TdeCaller,
  { object }: LoadedObject,
): void => {
  const now = directory.applicationById(id);
  if (now?.state !== 'enabled' || directory.stopOf(now.tenantId) !== null)
    throw new ServiceError('unauthenticated', 'the application is no longer enabled');
  if (now.groupId !== object.groupId) throw new ServiceError('key-not-found', 'no such object');
};

/**
 * The object, when the caller may see it. An object of another group looks as if it did not exist;
 * the attempt is recorded, unless it is another tenant's: neither log would be the place for it.
 */
export const findVisible = async (
  needs: Needs,
  caller: TdeCaller,
  handle: number,
  operation: string,
): Promise<LoadedObject> => {
  const loaded = await needs.directory.object(handle);
  if (loaded === undefined) {
    const gone = await needs.store.read.objects.get(handle);
    if (gone !== undefined && isVisible(caller, gone)) {
      await recordDenial(needs, caller, gone, operation, 'key-destroyed');
      throw new ServiceError('key-destroyed', 'the object is destroyed');
    }
    throw new ServiceError('key-not-found', 'no such object');
  }
  if (!isVisible(caller, loaded.object)) {
    if (loaded.object.tenantId === caller.application.tenantId)
      await recordDenial(needs, caller, loaded.object, operation, 'another group');
    throw new ServiceError('key-not-found', 'no such object');
  }
  if (loaded.object.integrity !== 'ok' || (loaded.key !== undefined && loaded.key.integrity !== 'ok'))
    throw new ServiceError('key-tampered', 'the stored object was changed from outside', {
      hint: 'compare the database with a backup; the audit log has an alarm that names the record',
    });
  return loaded;
};

export const requireOwner = async (
  needs: Needs,
  caller: TdeCaller,
  { object }: LoadedObject,
  operation: string,
): Promise<void> => {
  if (object.applicationId === caller.application.id) return;
  await recordDenial(needs, caller, object, operation, 'owned by another application');
  throw new ServiceError('forbidden', 'the object belongs to another application of the group');
};
