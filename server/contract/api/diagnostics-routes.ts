// Diagnostics of a key store endpoint: every layer between the cloud and its key, and where to
// begin.

import { z } from '@hono/zod-openapi';
import { identifier, moment, pageOf, pageQuery, type RouteGroup } from './row.ts';

export const checkResultSchema = z
  .strictObject({
    id: z.string(),
    layer: z.string(),
    title: z.string(),
    state: z.enum(['ok', 'warning', 'failed', 'skipped']),
    evidence: z.string(),
    fix: z.string().optional().openapi({ description: 'How to fix it.' }),
    predicts: z
      .string()
      .optional()
      .openapi({ description: 'The exception that the cloud key service raises in this case.' }),
    reports: z
      .strictObject({
        create: z.string().nullable(),
        connect: z.string().nullable(),
        createKey: z.string().nullable(),
        use: z.string().nullable(),
      })
      .optional()
      .openapi({
        description:
          'What it reports when a store is created, when it connects (ConnectionErrorCode), when a key is created and when one is used; null: it does not ask for this there.',
      }),
    durationMs: z.number(),
  })
  .openapi('CheckResult');
export type CheckResult = z.output<typeof checkResultSchema>;

export const diagnosisSchema = z
  .strictObject({
    id: identifier,
    endpointId: identifier,
    at: moment,
    results: z.array(checkResultSchema).readonly().openapi({
      description: 'In order of dependency: start with the first that failed.',
    }),
  })
  .openapi('Diagnosis');
export type Diagnosis = z.output<typeof diagnosisSchema>;

/** The lines of a run that is followed. */
export const diagnosisEventSchema = z
  .union([
    z.strictObject({
      kind: z.literal('started'),
      checks: z.array(checkResultSchema.pick({ id: true, layer: true, title: true })).readonly(),
    }),
    z.strictObject({ kind: z.literal('ended'), result: checkResultSchema }),
    z.strictObject({ kind: z.literal('kept'), diagnosis: diagnosisSchema }),
    z.strictObject({ kind: z.literal('stopped'), detail: z.string() }),
  ])
  .openapi('DiagnosisEvent', { description: '`stopped`: the run itself failed, and no result was saved.' });
export type DiagnosisEvent = z.output<typeof diagnosisEventSchema>;

const text = z.string().min(1).max(512);
const newDiagnosis = z
  .strictObject({
    callerTime: moment
      .optional()
      .openapi({ description: 'The clock of the caller, compared with that of the service.' }),
    cloud: z
      .strictObject({
        uriEndpoint: z
          .url({ protocol: /^https$/, error: 'must begin with https://' })
          .max(512)
          .optional()
          .openapi({ description: 'XksProxyUriEndpoint' }),
        uriPath: text.optional().openapi({ description: 'XksProxyUriPath' }),
        accessKeyId: text.optional().openapi({ description: 'AccessKeyId of the proxy credential' }),
        externalKeyId: text.optional().openapi({ description: 'XksKeyId' }),
      })
      .optional()
      .openapi({ description: 'The configuration in the cloud, compared with that of the endpoint.' }),
  })
  .openapi('NewDiagnosis');

export const diagnosticsRoutes = {
  run: {
    method: 'post',
    path: '/api/endpoints/{id}/diagnostics',
    needs: 'diagnostics:run',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Run the diagnostics of a key store endpoint',
    description: 'Checks from this node and through the public name. Takes a few seconds if something does not answer.',
    body: newDiagnosis,
    long: 'reads',
    answer: diagnosisSchema,
    creates: true,
  },
  follow: {
    method: 'post',
    path: '/api/endpoints/{id}/diagnostics/follow',
    needs: 'diagnostics:run',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Run the diagnostics of a key store endpoint and stream the results',
    description:
      'The same run, with one JSON document on each line: `started` with the list of checks, `ended` after each check, and finally ' +
      '`kept` with the saved run. It continues if the caller closes the connection.',
    body: newDiagnosis,
    answer: null,
    streams: ['application/x-ndjson'],
  },
  list: {
    method: 'get',
    path: '/api/endpoints/{id}/diagnostics',
    needs: 'endpoints:read',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'List earlier diagnostics of a key store endpoint',
    description: 'Newest first; kept for 90 days.',
    query: pageQuery,
    answer: pageOf(diagnosisSchema),
  },
  get: {
    method: 'get',
    path: '/api/endpoints/{id}/diagnostics/{diagnosisId}',
    needs: 'endpoints:read',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Get a diagnostics run',
    answer: diagnosisSchema,
  },
} as const satisfies RouteGroup;
