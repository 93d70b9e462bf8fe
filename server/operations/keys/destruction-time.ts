// When something was destroyed, told so that an erasure run knows whether it comes before it or
// behind: by the clock, but never earlier than the current run, nor than what the last one has
// covered, should the clock have jumped back. What a run has not covered it must not call
// unrecoverable.

import type { Clock } from '../../base/time.ts';
import type { Key } from '../../domain/key.ts';
import type { Repositories } from '../../ports/store.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';

const atOnce = 500;

interface EndedValue {
  readonly handle: number;
  readonly at: number;
}

/**
 * Later than every destruction: clocks jump ahead, too, and what was destroyed then is erased all
 * the same.
 */
export const ever = Number.MAX_SAFE_INTEGER;

export const destructionTime = async (tx: Repositories, clock: Clock): Promise<number> => {
  // From this moment on, what is destroyed waits for the next run: while one is under way, and when
  // it is over.
  const started = await tx.decisions.get('erasure-started');
  const covered = await tx.decisions.get('erasure-covered');
  return Math.max(clock.now(), Number(started ?? 0), Number(covered ?? 0));
};

/**
 * Objects whose value was replaced or destroyed since this time: rows that the service wrote. One
 * can be among them twice.
 */
export async function* endedValues(from: Pick<Repositories, 'objects'>, since: number): AsyncGenerator<EndedValue> {
  for (const how of ['replaced', 'destroyed'] as const)
    for (let after: StoredObject | undefined; ; ) {
      const page = await from.objects.listEnded(how, since, atOnce, after);
      for (const { handle, integrity, contentReplacedAt, destroyedAt } of page)
        if (integrity === 'ok') yield { handle, at: (how === 'replaced' ? contentReplacedAt : destroyedAt) ?? 0 };
      after = page.at(-1);
      if (page.length < atOnce) break;
    }
}

/** Destroyed in this time and not yet unrecoverable: rows that the service wrote. */
export async function* destroyedKeys(
  from: Pick<Repositories, 'keys'>,
  { since = 0, before = ever }: { readonly since?: number; readonly before?: number } = {},
): AsyncGenerator<Key> {
  for (let after: Key | undefined; ; ) {
    const page = await from.keys.listErasable({ since, before }, atOnce, after);
    for (const key of page) if (key.integrity === 'ok' && key.state === 'destroyed') yield key;
    after = page.at(-1);
    if (page.length < atOnce) return;
  }
}
