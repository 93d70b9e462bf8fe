// Handlers of diagnostics of endpoints.

import type { Operations } from '../../../operations/index.ts';
import { representDiagnosis, representPage } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const diagnosticsHandlers = ({ diagnostics }: Operations): Handlers['diagnostics'] => ({
  run: async ({ actor, path, body: { callerTime, cloud = {} } }) => {
    const time = callerTime === undefined ? null : Date.parse(callerTime);
    const diagnosis = await diagnostics.run(actor, path.id, { callerTime: time, cloud });
    return { id: diagnosis.id, answer: representDiagnosis(diagnosis) };
  },
  list: async ({ actor, path, query }) =>
    representPage(await diagnostics.list(actor, path.id, query), representDiagnosis),
  get: async ({ actor, path }) => representDiagnosis(await diagnostics.get(actor, path.id, path.diagnosisId)),
});
