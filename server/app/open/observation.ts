// Who observes the requests of a service: the access log and OpenTelemetry, each only when it is
// configured.

import { readFileSync } from 'node:fs';
import type { Telemetry } from '../../adapters/telemetry/otlp.ts';
import type { Steps } from '../../adapters/telemetry/steps.ts';
import { systemClock } from '../../base/time.ts';
import { createObservation, type Observation } from '../../fronts/shared/observe.ts';
import type { LogState } from '../../ports/log.ts';
import type { TelemetryState } from '../../ports/telemetry.ts';
import type { ServiceOptions } from '../running-service.ts';
import { logRequests } from './access-log.ts';
import type { Disks } from './disks.ts';

export interface Observed {
  /** Undefined: nothing observes. */
  readonly observation: Observation | undefined;
  /** Undefined: the work for a request is not recorded step by step. */
  readonly steps: Steps | undefined;
  readonly telemetry: Telemetry | undefined;
  readonly accessLogState: () => LogState;
  readonly telemetryState: () => TelemetryState;
}

const idle = { dropped: { queue: 0, export: 0 }, failing: false } as const;

export const openObservation = async ({
  config,
  version,
  accessLog,
  log,
  disks: {
    files: { read },
  },
}: Pick<ServiceOptions, 'config' | 'version' | 'accessLog' | 'log'> & {
  readonly disks: Pick<Disks, 'files'>;
}): Promise<Observed> => {
  const own = config.telemetry;
  let telemetry: Telemetry | undefined;
  let steps: Steps | undefined;
  if (own !== undefined) {
    // Loaded only here: the library takes memory and time to load.
    const { openTelemetry } = await import('../../adapters/telemetry/otlp.ts');
    telemetry = openTelemetry({
      ...own,
      ...{ version, log, node: config.node.name },
      token:
        own.tokenFile === undefined ? undefined : async () => (await read(own.tokenFile ?? '')).toString('utf8').trim(),
      authorities: own.ca === undefined ? undefined : readFileSync(own.ca, 'utf8'),
    });
    if (own.traces) steps = (await import('../../adapters/telemetry/steps.ts')).createSteps();
  }
  const observers = [
    ...(accessLog === undefined ? [] : [logRequests(accessLog.write)]),
    ...(telemetry !== undefined && own?.traces === true ? [telemetry.observe] : []),
  ];
  return {
    observation: observers.length === 0 ? undefined : createObservation(observers, () => systemClock.now(), steps?.run),
    steps,
    telemetry,
    accessLogState: () => accessLog?.state() ?? { lost: 0, failure: null },
    telemetryState: () => telemetry?.state() ?? { traces: idle, metrics: idle },
  };
};
