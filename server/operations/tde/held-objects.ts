// What an agent holds, checked for many objects at once: a heartbeat of hundreds of keys is one
// request, and so are the values of a few hundred data objects. An answer says of each object no
// more than a request of its own would. Nothing is recorded and nothing refused here: where a
// single request would be refused, the object is left out, and the agent asks for it alone, which
// tells why and is recorded.

import { otherWork } from '../../base/next-turn.ts';
import { ServiceError } from '../../base/service-error.ts';
import type { LoadedObject } from '../../ports/working-memory.ts';
import { readContent } from './object-content.ts';
import type { TdeCaller, TdeOperations } from './tde-operations.ts';
import { type UsePorts, usesAdmitted } from './token-key-pipeline.ts';
import { isVisible } from './visibility.ts';

/** Objects that are looked up before other requests are answered. */
const stepLength = 128;

export const heldObjects = (ports: UsePorts): Pick<TdeOperations, 'refresh' | 'readValues'> => {
  const { directory } = ports;

  const visible = async (caller: TdeCaller, handle: number): Promise<LoadedObject | undefined> => {
    const loaded = await directory.object(handle);
    return loaded !== undefined && isVisible(caller, loaded.object) && loaded.object.integrity === 'ok'
      ? loaded
      : undefined;
  };
  const inSteps = async <T, R>(all: readonly T[], work: (each: T) => Promise<R>): Promise<R[]> => {
    const done: R[] = [];
    for (const each of all) {
      if (done.length % stepLength === stepLength - 1) await otherWork();
      done.push(await work(each));
    }
    return done;
  };

  return {
    refresh: (caller, held) =>
      inSteps(held, async ({ handle, uses, version }) => {
        const loaded = await visible(caller, handle);
        if (loaded === undefined) return { uses: [], same: false };
        const admitted = uses.length === 0 ? [] : usesAdmitted(loaded);
        return {
          uses: uses.filter((use) => admitted.includes(use)),
          same: version !== 0 && loaded.object.version === version && (loaded.key?.integrity ?? 'ok') === 'ok',
        };
      }),
    readValues: async (caller, handles, mostBytes) => {
      let left = mostBytes;
      const values = await inSteps(handles, async (handle) => {
        const object = (await visible(caller, handle))?.object;
        const length = object?.content?.length ?? 0;
        if (object?.class !== 'data' || object.version === undefined || length === 0 || length > left) return [];
        left -= length;
        try {
          const { value, version = object.version } = await readContent(ports, object);
          return [{ handle, version, value }];
        } catch (error) {
          // One that was changed outside of DKE, or is gone by now, keeps no other from its reader.
          if (error instanceof ServiceError && ['key-tampered', 'key-destroyed'].includes(error.code)) return [];
          throw error;
        }
      });
      return values.flat();
    },
  };
};
