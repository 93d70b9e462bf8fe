// Changes the label, the usages or the agent's attributes of a modifiable object of the caller's
// own, or the value of data, and takes freedoms from a key: it becomes sensitive, or stops being
// extractable, permanently. What it was before stays known (`alwaysSensitive`, `neverExtractable`):
// a key that was outside once is never again as good as one that was not.

import { parseBase64 } from '../../base/bytes.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { KeyUsage } from '../../domain/key.ts';
import type { Ports } from '../../ports/ports.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';
import { destructionTime } from '../keys/destruction-time.ts';
import { requireFreeLabel, requireReadable } from '../shared/labels.ts';
import { nameFromLabel } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import { writeOneOnce } from './carry-out-once.ts';
import { replaceContent } from './object-content.ts';
import type { TdeOperations, TokenObjectChange } from './tde-operations.ts';
import { findVisible, instanceDetails, requireOwner, show } from './visibility.ts';

const isSame = (a: readonly KeyUsage[], b: readonly KeyUsage[]): boolean =>
  a.length === b.length && a.every((usage) => b.includes(usage));

const checkChange = (
  { label, attributes, sensitive, extractable, wrapWithTrusted }: TokenObjectChange,
  before: StoredObject,
): void => {
  if (label !== undefined && parseBase64(label) === null) throw new ServiceError('validation', 'label is not Base64');
  if (attributes !== undefined && parseBase64(attributes) === null)
    throw new ServiceError('validation', 'attributes is not Base64');
  const isSecret = before.class === 'secret-key' || before.class === 'private-key';
  if (!isSecret && (sensitive ?? extractable ?? wrapWithTrusted) !== undefined)
    throw new ServiceError('validation', 'only secret and private keys are sensitive, extractable, or wrapped');
};

export const updateTokenObject =
  (
    ports: Pick<Ports, 'store' | 'core' | 'ring' | 'directory' | 'usage' | 'clock' | 'erasure'>,
  ): TdeOperations['updateObject'] =>
  async (caller, handle, { seen, ...change }, value) => {
    const { directory, erasure } = ports;
    const loaded = await findVisible(ports, caller, handle, 'update');
    await requireOwner(ports, caller, loaded, 'update');
    if (!loaded.object.modifiable) throw new ServiceError('forbidden', 'the object is not modifiable');
    checkChange(change, loaded.object);
    if (value !== undefined && loaded.object.class !== 'data')
      throw new ServiceError('validation', 'only the value of data is replaced');
    const after = await writeOneOnce(
      ports,
      caller,
      async (tx) => {
        const before = await tx.objects.get(handle);
        if (before === undefined || before.destroyedAt !== null)
          throw new ServiceError('key-destroyed', 'the object is destroyed');
        if (seen !== undefined && (seen.attributes !== before.attributes || !isSame(seen.usages, before.usages)))
          throw new ServiceError('conflict', 'the object was changed in the meantime', {
            hint: 'read it and try again',
          });
        const next: StoredObject = {
          ...before,
          version: undefined,
          label: change.label ?? before.label,
          attributes: change.attributes ?? before.attributes,
          usages: change.usages ?? before.usages,
          sensitive: change.sensitive ?? before.sensitive,
          extractable: change.extractable ?? before.extractable,
          rules: change.wrapWithTrusted === true ? { ...before.rules, wrapWithTrusted: true } : before.rules,
          ...(value === undefined
            ? {}
            : {
                content: await replaceContent(ports, tx, before, value),
                contentReplacedAt: await destructionTime(tx, ports.clock),
              }),
        };
        if (before.wrappedSensitive && next.usages.includes('decrypt'))
          throw new ServiceError('forbidden', 'a key that has wrapped sensitive keys does not decrypt');
        if (change.usages !== undefined || next.label !== before.label) requireReadable(next);
        if (next.label !== before.label) await requireFreeLabel(tx, caller, next, handle);
        await tx.objects.update(next);
        const key = await tx.keys.get(before.tenantId, before.id);
        if (key !== undefined) await tx.keys.update({ ...key, name: nameFromLabel(next.label), usages: next.usages });
        await recordEvent(tx, 'object.updated', caller.actor, about(key === undefined ? 'object' : 'key', before), {
          class: before.class,
          label: next.label,
          handle,
          changed: [
            ...Object.entries(change)
              .filter(([, each]) => each !== undefined)
              .map(([name]) => name),
            ...(value === undefined ? [] : ['value']),
          ],
          ...instanceDetails(caller),
        });
        return next;
      },
      'changed',
    );
    await directory.renew({ objects: [handle], keys: [after.id] });
    if (value !== undefined) erasure.schedule();
    return show(caller, after);
  };
