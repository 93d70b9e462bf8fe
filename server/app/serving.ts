// Whether the service serves: once its start is done, and while it is not in quarantine. A database
// that is not the one that was signed closes it, at the start or later, until an operator confirms
// it.

import { toRfc3339 } from '../base/time.ts';
import type { Unsound } from '../domain/audit-finding.ts';
import { toText } from '../domain/difference.ts';
import type { RunningFleet } from '../operations/nodes/running-fleet.ts';
import type { QuarantineGate } from '../operations/service/quarantine.ts';
import type { Log } from '../ports/log.ts';
import type { Directory } from '../ports/working-memory.ts';
import type { ServiceEvents } from './open/events.ts';
import type { Start } from './start.ts';

export interface Serving {
  /** Runs the start, or waits with it for an operator. */
  begin(): Promise<void>;
  /** False: what a service in quarantine answers is served. */
  isOpen(): boolean;
}

export const createServing = (
  start: Start,
  {
    fleet,
    quarantine,
    directory,
    events,
    log,
    say,
  }: {
    readonly fleet: Pick<RunningFleet, 'resume'>;
    readonly quarantine: QuarantineGate;
    readonly directory: Pick<Directory, 'setHealthy' | 'loadTenants'>;
    readonly events: Pick<ServiceEvents, 'on'>;
    readonly log: Pick<Log, 'error'>;
    /** Tells the operator who has started the service. */
    readonly say: ((text: string) => void) | undefined;
  },
): Serving => {
  let isStarted = false;
  /** What was found before the start was done. */
  let early: Unsound | undefined;
  let serving = false;

  const close = (): void => {
    const closed = quarantine.closed();
    if (closed === undefined) return;
    serving = false;
    directory.setHealthy(false);
    log.error('the service is in quarantine', {
      reason: closed.reason,
      since: toRfc3339(closed.since),
      differences: closed.differences.map(toText),
    });
    say?.(`quarantine: ${closed.reason}`);
    for (const each of closed.differences) say?.(`quarantine, compared: ${toText(each)}`);
    say?.(`quarantine confirmation code: ${closed.code}`);
  };
  const enterQuarantine = (found: Unsound): void => {
    quarantine.enter(found);
    quarantine.onConfirmed(async () => {
      await fleet.resume();
      serving = true;
    });
    close();
  };
  const found = (finding: Unsound): void => {
    if (!isStarted) early ??= finding;
    else if (quarantine.closed() === undefined) enterQuarantine(finding);
  };
  quarantine.onNewCode(close);
  events.on('databaseChanged', found);
  events.on('changesLost', found);
  const run = async (): Promise<void> => {
    await start.run();
    isStarted = true;
    serving = true;
    if (early !== undefined) enterQuarantine(early);
  };

  return {
    begin: async () => {
      if (quarantine.closed() === undefined) {
        await run();
        return;
      }
      close();
      await directory.loadTenants();
      quarantine.onConfirmed(run);
    },
    isOpen: () => serving,
  };
};
