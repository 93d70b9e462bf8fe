// Handlers of diagnostics of endpoints.

import { ServiceError } from '../../../base/service-error.ts';
import type { DiagnosisEvent } from '../../../contract/api/diagnostics-routes.ts';
import type { DiagnosisEvent as Happened, Operations } from '../../../operations/index.ts';
import { exportLines } from '../export.ts';
import { representCheck, representDiagnosis, representPage } from '../represent.ts';
import type { Handlers } from './handler.ts';

type DiagnosisRequest = Parameters<Operations['diagnostics']['run']>[2];
type NewDiagnosis = Parameters<Handlers['diagnostics']['run']>[0]['body'];
const requestOf = ({ callerTime, cloud = {} }: NewDiagnosis): DiagnosisRequest => ({
  callerTime: callerTime === undefined ? null : Date.parse(callerTime),
  cloud,
});

const represent = (event: Happened): DiagnosisEvent =>
  event.kind === 'started'
    ? event
    : event.kind === 'ended'
      ? { kind: 'ended', result: representCheck(event.result) }
      : { kind: 'kept', diagnosis: representDiagnosis(event.diagnosis) };

/**
 * A page of one line each, so that each is sent when it is known. What stops the run is its last
 * line: the status is sent already.
 */
const linesOf = async function* lines(events: AsyncIterable<Happened>): AsyncGenerator<readonly string[]> {
  const line = (event: DiagnosisEvent): readonly string[] => [JSON.stringify(event)];
  try {
    for await (const event of events) yield line(represent(event));
  } catch (error) {
    const detail = error instanceof ServiceError ? error.message : 'an internal error occurred';
    yield line({ kind: 'stopped', detail });
  }
};

export const diagnosticsHandlers = ({ diagnostics }: Operations): Handlers['diagnostics'] => ({
  follow: async ({ actor, path, body }) =>
    exportLines(linesOf(await diagnostics.follow(actor, path.id, requestOf(body))), 'dke-diagnostics.ndjson'),
  run: async ({ actor, path, body }) => {
    const diagnosis = await diagnostics.run(actor, path.id, requestOf(body));
    return { id: diagnosis.id, answer: representDiagnosis(diagnosis) };
  },
  list: async ({ actor, path, query }) =>
    representPage(await diagnostics.list(actor, path.id, query), representDiagnosis),
  get: async ({ actor, path }) => representDiagnosis(await diagnostics.get(actor, path.id, path.diagnosisId)),
});
