// The request log of the key store endpoints: what the cloud key service asked, and how each
// request ended.

import { z } from '@hono/zod-openapi';
import type { RequestFilter } from '../../domain/request-log.ts';
import {
  exportFormat,
  exporting,
  exportTypes,
  identifier,
  moment,
  pageOf,
  pageQuery,
  queryFlag,
  type RouteGroup,
  timeSpan,
} from './row.ts';

export const endpointRequestSchema = z
  .strictObject({
    sequence: z.int().openapi({ description: 'Defines the order of the records.' }),
    at: moment,
    requestId: z.string(),
    endpointId: identifier.nullable().openapi({ description: 'Null: the request did not reach an endpoint.' }),
    operation: z.string().openapi({ example: 'encrypt' }),
    kmsOperation: z.string().nullable(),
    kmsRequestId: z.string().nullable().openapi({ description: '`requestID` of the event in CloudTrail.' }),
    principal: z.string().nullable(),
    kmsKeyArn: z.string().nullable(),
    awsSourceVpc: z.string().nullable(),
    awsSourceVpce: z.string().nullable(),
    kmsViaService: z.string().nullable(),
    externalKeyId: z.string().nullable(),
    credentialId: z.string().nullable(),
    status: z.int(),
    errorName: z.string().nullable(),
    durationMs: z.number(),
    phases: z.strictObject({ readMs: z.number(), authMs: z.number(), cryptoMs: z.number() }),
    reason: z.string().nullable().openapi({ description: 'Why it was refused, if the answer does not say.' }),
    peer: z.string().nullable(),
  })
  .openapi('EndpointRequest');
export type EndpointRequest = z.output<typeof endpointRequestSchema>;

/**
 * A line of an export, of any released version, or one that a sink has received: members that came
 * after the first release may be absent. A new member of a record is added here as well, and the
 * hash of older lines stays what it was (base/request-minutes.ts).
 */
export const requestLineSchema = endpointRequestSchema.partial({
  awsSourceVpc: true,
  awsSourceVpce: true,
  kmsViaService: true,
});

const text = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(/^\P{Cc}+$/u, 'must have no control characters');
const orPrefix = { description: 'Exact text, or a prefix followed by `*`.' };

const filters = {
  operation: text(40)
    .optional()
    .openapi({ description: '`health`, `metadata`, `encrypt`, `decrypt`; `unknown` for any other path.' }),
  result: z.enum(['answered', 'refused']).optional(),
  signed: queryFlag({
    description: 'Whether its signature was valid. Anyone can send requests without a valid signature.',
  }),
  status: z
    .string()
    .regex(/^[1-5][0-9]{2}$/, 'must be an HTTP status')
    .transform(Number)
    .optional()
    .openapi({ type: 'integer' }),
  errorName: text(100).optional(),
  kmsOperation: text(100).optional(),
  principal: text(2048).optional().openapi(orPrefix),
  kmsKeyArn: text(2048).optional().openapi(orPrefix),
  awsSourceVpc: text(2048).optional(),
  awsSourceVpce: text(2048).optional(),
  kmsViaService: text(2048).optional(),
  externalKeyId: text(128).optional(),
  requestId: text(128).optional(),
  kmsRequestId: text(256).optional(),
  ...timeSpan,
} satisfies Record<Exclude<keyof RequestFilter, 'endpointId'>, z.ZodType>;

const anyEndpoint = {
  endpointId: text(100)
    .transform((id) => (id === 'none' ? null : id))
    .optional()
    .openapi({ type: 'string', description: '`none`: requests that did not reach an endpoint.' }),
};
const searching =
  'Newest first. Texts are compared exactly. A page can be short or empty before the end: continue while `next` is not null.';
export const correlatedRequestsSchema = z
  .strictObject({
    kmsRequestIds: z.array(z.string()).readonly().openapi({ description: 'The request ids that were searched for.' }),
    items: z.array(endpointRequestSchema).readonly(),
    oldest: moment.nullable().openapi({ description: 'The time of the oldest record that the log still has.' }),
  })
  .openapi('CorrelatedRequests');
export type CorrelatedRequests = z.output<typeof correlatedRequestsSchema>;

const cloudTrailText = z
  .strictObject({
    text: z.string().min(1, 'must not be empty').max(60_000, 'must be at most 60000 characters').openapi({
      description: 'A copied CloudTrail event (one, several, or part of one), or only a request id.',
    }),
  })
  .openapi('CloudTrailText');

const verificationSchema = z
  .strictObject({
    requests: z.int().openapi({ description: 'Records that were checked.' }),
    minutes: z.int().openapi({ description: 'Minutes that were hashed.' }),
    late: z.int().openapi({ description: 'Records that arrived after their minute was hashed.' }),
    pruned: z.int().openapi({ description: 'Records that retention removed. Their hash is kept.' }),
    dropped: z.int().openapi({
      description:
        'Signed requests that were not recorded because the log could not keep up. Each such minute is a finding.',
    }),
    droppedUnsigned: z.int().openapi({ description: 'Requests without a valid signature that were not recorded.' }),
    open: z.int().openapi({ description: 'Records that are not yet covered by a hash.' }),
    valid: z.boolean(),
    findings: z.array(z.string()).readonly(),
  })
  .openapi('RequestLogVerification');
export type RequestLogVerification = z.output<typeof verificationSchema>;

export const requestRoutes = {
  search: {
    method: 'get',
    path: '/api/requests',
    needs: 'requests:read',
    tenancy: 'both',
    summary: 'Search the request log of all endpoints',
    description: `${searching} Includes requests that did not reach an endpoint and requests to deleted endpoints.`,
    query: pageQuery.extend({ ...anyEndpoint, ...filters }),
    answer: pageOf(endpointRequestSchema),
  },
  export: {
    method: 'get',
    path: '/api/requests/export',
    needs: 'requests:export',
    tenancy: 'both',
    summary: 'Export the request log of all endpoints',
    description: exporting,
    query: z.strictObject({ ...anyEndpoint, ...filters, ...exportFormat }),
    answer: null,
    streams: exportTypes,
  },
  correlate: {
    method: 'post',
    path: '/api/requests/correlate',
    needs: 'requests:read',
    tenancy: 'both',
    summary: 'Find the requests for a CloudTrail event',
    description:
      'Searches by the `requestID` of the event, which is the `kmsRequestId` of the request. Changes nothing.',
    body: cloudTrailText,
    reads: true,
    answer: correlatedRequestsSchema,
  },
  verify: {
    method: 'get',
    path: '/api/requests/verification',
    needs: 'audit:read',
    tenancy: 'platform',
    summary: 'Compare the request log with its hashes in the audit log',
    description:
      'Compares whole minutes; by default those of the last hour. Finds records that were changed, removed or added after their minute ' +
      'was hashed, and minutes in which signed requests were not recorded.',
    query: z.strictObject(timeSpan),
    long: 'reads',
    answer: verificationSchema,
  },
  searchOne: {
    method: 'get',
    path: '/api/endpoints/{id}/requests',
    needs: 'requests:read',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Search the request log of an endpoint',
    description: searching,
    query: pageQuery.extend(filters),
    answer: pageOf(endpointRequestSchema),
  },
  exportOne: {
    method: 'get',
    path: '/api/endpoints/{id}/requests/export',
    needs: 'requests:export',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Export the request log of an endpoint',
    description: exporting,
    query: z.strictObject({ ...filters, ...exportFormat }),
    answer: null,
    streams: exportTypes,
  },
} as const satisfies RouteGroup;
