// What errors of the database mean to callers. After one that leaves everything uncertain, nothing
// is written.

import { ServiceError } from '../../../base/service-error.ts';
import type { Engine } from '../engine/engine.ts';
import { StoreError } from '../engine/store-error.ts';

export interface StoreErrors {
  /**
   * What callers get for an error of a unit of work, or of its transaction. A fatal one stops all
   * writes.
   */
  ofWriting(error: unknown): unknown;
  /** What callers get for an error of a read. No such error stops writes. */
  ofReading(error: unknown): unknown;
  /** Throws when nothing may be written. */
  requireTrusted(): void;
  /** The store is being closed: reads fail for that reason. */
  closing(): void;
}

/**
 * Fronts refuse it before; a name that another service gives (OpenID, a certificate) may have it.
 */
const noSuchText = (cause: unknown): ServiceError =>
  new ServiceError('validation', 'the character U+0000 is not allowed', { cause });

export const createStoreErrors = (engine: Engine, onFatal: (error: StoreError) => void): StoreErrors => {
  const away = (error: unknown, more = ''): ServiceError => {
    const { what = 'the database does not answer', hint } = engine.whenAway(error) ?? {};
    return new ServiceError('unavailable', `${what}${more}`, { cause: error, ...(hint === undefined ? {} : { hint }) });
  };
  let fatal = false;
  const ofWriting = (error: unknown): unknown => {
    if (error instanceof ServiceError) return error;
    const kind = engine.kindOf(error);
    if (kind === 'fatal') {
      if (!fatal) {
        fatal = true;
        onFatal(
          error instanceof StoreError && error.code === 'newer'
            ? error
            : new StoreError('io', `writing ${engine.place} failed: what was not confirmed is lost`, { cause: error }),
        );
      }
      return new ServiceError('unavailable', 'the store has failed', { cause: error });
    }
    if (kind === 'full')
      return new ServiceError('unavailable', 'the disk is full: nothing was changed', {
        hint: engine.whenFull,
        cause: error,
      });
    if (kind === 'busy')
      return new ServiceError('unavailable', 'another process has locked the database: nothing was changed', {
        hint: 'stop the process that has the database open for writing',
        cause: error,
      });
    if (kind === 'away') return away(error, ': nothing was changed');
    if (kind === 'unknown')
      return new ServiceError('unavailable', `${engine.place} has not confirmed the change: it may be made yet`, {
        hint: `check whether it was made before you repeat it; ${engine.whenStalled}`,
        reason: 'unconfirmed',
        cause: error,
      });
    if (kind === 'text') return noSuchText(error);
    if (kind === 'constraint')
      return new ServiceError('conflict', 'the change conflicts with another one', { cause: error });
    return error;
  };
  let closing = false;
  const ofReading = (error: unknown): unknown => {
    if (error instanceof ServiceError) return error;
    // A caller reads one thing after another while the service stops.
    if (closing) return new ServiceError('unavailable', 'the service is stopping', { cause: error });
    const kind = engine.kindOf(error);
    if (kind === 'text') return noSuchText(error);
    if (kind === 'away') return away(error);
    if (kind === 'full')
      return new ServiceError('unavailable', 'the disk is full', { hint: engine.whenFull, cause: error });
    if (kind === 'busy')
      return new ServiceError('unavailable', 'another process has locked the database', {
        hint: 'stop the process that has the database open for writing',
        cause: error,
      });
    return error;
  };
  return {
    ofWriting,
    ofReading,
    // A sync that failed is told once: the next one of the same file succeeds, and what was lost
    // stays lost. So nothing is committed behind it.
    requireTrusted: () => {
      if (fatal) throw new StoreError('io', 'the store has failed');
    },
    closing: () => {
      closing = true;
    },
  };
};
