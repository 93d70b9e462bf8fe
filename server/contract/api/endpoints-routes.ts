// Key store endpoints: what a cloud key service calls under /xks/<prefix>, their settings and their
// SigV4 credentials.

import { z } from '@hono/zod-openapi';
import type { RequestOrigin, RuleSubject } from '../../domain/authorization-rule.ts';
import type { EndpointState } from '../../domain/endpoint.ts';
import { effectiveKeyState } from './keys-routes.ts';
import {
  countedPageOf,
  displayName,
  identifier,
  integrity,
  listOf,
  moment,
  newName,
  pageQuery,
  type RouteGroup,
} from './row.ts';

export const endpointCredentialSchema = z
  .strictObject({
    id: identifier,
    endpointId: identifier,
    accessKeyId: z.string(),
    createdAt: moment,
    lastUsedAt: moment.nullable(),
  })
  .openapi('EndpointCredential');
export type EndpointCredential = z.output<typeof endpointCredentialSchema>;

const mostRules = 100;
const mostPatterns = 100;
const longestPattern = 2048;

const patterns = z
  .array(
    z
      .string()
      .min(1, 'must not be empty')
      .max(longestPattern, `must be at most ${longestPattern} characters`)
      .regex(/^[\x20-\x7e]+$/, 'must be printable ASCII'),
  )
  .min(1, 'must contain a pattern')
  .max(mostPatterns, `must be at most ${mostPatterns} patterns`)
  .readonly();

const ruleSubjects = {
  principal: patterns.optional().openapi({ description: 'awsPrincipalArn' }),
  account: patterns.optional().openapi({ description: 'the account in awsPrincipalArn' }),
  key: patterns.optional().openapi({ description: 'kmsKeyArn' }),
  region: patterns.optional().openapi({ description: 'the region in kmsKeyArn' }),
  operation: patterns.optional().openapi({ description: 'kmsOperation' }),
  vpc: patterns.optional().openapi({ description: 'awsSourceVpc' }),
  vpcEndpoint: patterns.optional().openapi({ description: 'awsSourceVpce' }),
  viaService: patterns.optional().openapi({ description: 'kmsViaService' }),
} satisfies Record<RuleSubject, z.ZodType>;

export const authorizationRuleSchema = z
  .strictObject({
    name: displayName,
    effect: z.enum(['allow', 'deny']),
    when: z.strictObject(ruleSubjects).readonly(),
  })
  .openapi('AuthorizationRule', {
    description:
      'Matches when each named subject matches one of its patterns (`*`: any characters, `?`: one). The first matching rule ' +
      'decides. A request that matches no rule is allowed.',
  });
export type AuthorizationRule = z.output<typeof authorizationRuleSchema>;

export const endpointSettingsSchema = z
  .strictObject({
    operatorProbes: z.boolean().openapi({ description: 'true: health requests need no signature.' }),
    rate: z
      .strictObject({ perSecond: z.int().min(1).max(1_000_000), burst: z.int().min(1).max(1_000_000) })
      .readonly()
      .nullable()
      .openapi({ description: 'Requests above it get 429. Null: no limit.' }),
    clientCertificate: z
      .strictObject({
        authorities: z.string().max(65_536).openapi({
          description:
            'CA bundle in PEM: the authority that issues the client certificates, and all above it up to the root.',
        }),
        commonName: z
          .string()
          .regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 printable characters without spaces')
          .openapi({ example: 'cks.kms.eu-central-1.amazonaws.com' }),
      })
      .readonly()
      .nullable()
      .openapi({ description: 'Mutual TLS. Null: no client certificate is required.' }),
    rules: z.array(authorizationRuleSchema).max(mostRules, `must be at most ${mostRules} rules`).readonly(),
  })
  .openapi('EndpointSettings');
export type EndpointSettings = z.output<typeof endpointSettingsSchema>;

/** Rules decide about each text that a request can have, and the request log has it as it came. */
const origin = (most: number, description: string) =>
  z.string().max(most, `must be at most ${most} characters`).openapi({ description });

/**
 * The origin of a simulated request, as the cloud key service says it in `requestMetadata`; names
 * are those of its proxy protocol.
 */
const simulatedRequestSchema = z
  .strictObject({
    kmsOperation: origin(2048, 'The operation that the caller requested from the cloud key service.').openapi({
      example: 'Decrypt',
    }),
    awsPrincipalArn: origin(2048, 'The caller.').optional(),
    kmsKeyArn: origin(2048, 'The key of the cloud.').optional(),
    awsSourceVpc: origin(2048, 'The VPC of the caller.').optional(),
    awsSourceVpce: origin(2048, 'The VPC endpoint of the call.').optional(),
    kmsViaService: origin(2048, 'The cloud service that made the call for the caller.').optional(),
  } satisfies Record<keyof RequestOrigin, z.ZodType>)
  .openapi('SimulatedRequest');
export type SimulatedRequest = z.output<typeof simulatedRequestSchema>;

const decided = {
  effect: z.enum(['allow', 'deny']),
  rule: z
    .string()
    .nullable()
    .openapi({ description: 'The rule that decides. Null: none matches, and the request is allowed.' }),
};
const ruleDecisionSchema = z
  .strictObject({
    ...decided,
    passed: z
      .array(
        z.strictObject({
          rule: z.string(),
          subject: z.enum(Object.keys(ruleSubjects) as RuleSubject[]),
          value: z.string().nullable().openapi({ description: 'Null: the request does not contain it.' }),
        }),
      )
      .readonly()
      .openapi({
        description: 'The earlier rules that did not match, in order, each with the first subject that did not match.',
      }),
    current: z.strictObject(decided).openapi({ description: 'The decision of the active rules.' }),
  })
  .openapi('RuleDecision');
export type RuleDecision = z.output<typeof ruleDecisionSchema>;

const mostSimulated = 100;

export const endpointSchema = z
  .strictObject({
    id: identifier,
    tenantId: identifier,
    name: z.string(),
    prefix: z.string(),
    uriEndpoint: z
      .string()
      .openapi({ description: 'XksProxyUriEndpoint: the address of the service (server.public_url).' }),
    uriPath: z.string().openapi({ description: 'XksProxyUriPath' }),
    vaultId: identifier,
    keyId: identifier.openapi({ description: 'The external key id (XksKeyId).' }),
    keyState: effectiveKeyState.openapi({
      description: 'What the key can do now. Unless it is active, every request for it is refused.',
    }),
    state: z.enum(['enabled', 'disabled', 'deleted'] satisfies EndpointState[]),
    settings: endpointSettingsSchema,
    createdAt: moment,
    credentials: z.array(endpointCredentialSchema).readonly(),
    integrity,
  })
  .openapi('Endpoint');
export type Endpoint = z.output<typeof endpointSchema>;

/** The file that AWS KMS takes when an external key store is made; member names are AWS's. */
export const proxyConfigurationSchema = z
  .strictObject({
    XksProxyUriPath: z.string(),
    XksProxyAuthenticationCredential: z.strictObject({ AccessKeyId: z.string(), RawSecretAccessKey: z.string() }),
  })
  .openapi('XksProxyConfiguration');
export type ProxyConfiguration = z.output<typeof proxyConfigurationSchema>;

const newEndpoint = z
  .strictObject({
    name: displayName,
    vaultId: identifier,
    keyId: identifier,
    prefix: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'must be 1 to 64 of A-Z a-z 0-9 _ - and begin with a letter or digit')
      .optional()
      .openapi({ description: 'Random when absent.' }),
    settings: endpointSettingsSchema.partial().optional().openapi({ description: 'Absent members have defaults.' }),
  })
  .openapi('NewEndpoint');

export const endpointRoutes = {
  create: {
    method: 'post',
    path: '/api/endpoints',
    needs: 'endpoints:manage',
    summary: 'Create a key store endpoint',
    body: newEndpoint,
    answer: endpointSchema,
    creates: true,
  },
  list: {
    method: 'get',
    path: '/api/endpoints',
    needs: 'endpoints:read',
    summary: 'List key store endpoints',
    query: pageQuery,
    answer: countedPageOf(endpointSchema),
  },
  get: {
    method: 'get',
    path: '/api/endpoints/{id}',
    needs: 'endpoints:read',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Get a key store endpoint',
    answer: endpointSchema,
  },
  enable: {
    method: 'post',
    path: '/api/endpoints/{id}/enable',
    needs: 'endpoints:manage',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Enable a key store endpoint',
    answer: endpointSchema,
    changes: 'get',
  },
  disable: {
    method: 'post',
    path: '/api/endpoints/{id}/disable',
    needs: 'endpoints:manage',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Disable a key store endpoint',
    answer: endpointSchema,
    changes: 'get',
  },
  rename: {
    method: 'put',
    path: '/api/endpoints/{id}/name',
    needs: 'endpoints:manage',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Rename a key store endpoint',
    description: 'Its prefix, credentials and rules stay: the cloud notices nothing.',
    body: newName,
    answer: endpointSchema,
    changes: 'get',
  },
  changeSettings: {
    method: 'put',
    path: '/api/endpoints/{id}/settings',
    needs: 'endpoints:manage',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Replace the settings of a key store endpoint',
    description: 'Replaces all settings. They apply from the next request on.',
    body: endpointSettingsSchema,
    answer: endpointSchema,
    changes: 'get',
  },
  simulateRules: {
    method: 'post',
    path: '/api/endpoints/{id}/rules/simulate',
    needs: 'endpoints:read',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Test requests against the rules of a key store endpoint',
    description:
      'Tests `rules`, or the active rules when absent. Returns one decision for each request, in order. Changes nothing.',
    body: z
      .strictObject({
        rules: z
          .array(authorizationRuleSchema)
          .max(mostRules, `must be at most ${mostRules} rules`)
          .readonly()
          .optional(),
        requests: z
          .array(simulatedRequestSchema)
          .min(1, 'must contain a request')
          .max(mostSimulated, `must be at most ${mostSimulated} requests`)
          .readonly(),
      })
      .openapi('RuleSimulation'),
    reads: true,
    answer: listOf(ruleDecisionSchema),
  },
  delete: {
    method: 'delete',
    path: '/api/endpoints/{id}',
    needs: 'endpoints:manage',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Delete a key store endpoint',
    description: 'Its prefix is never used again. The key stays.',
    answer: endpointSchema,
    changes: 'get',
  },
  addCredential: {
    method: 'post',
    path: '/api/endpoints/{id}/credentials',
    needs: 'endpoints:credentials',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Add a SigV4 credential',
    description:
      'The answer is the proxy configuration file for AWS KMS, with the secret, which is shown only once. `Location` ' +
      'names the credential. Two can be valid at a time; a third is refused (conflict).',
    answer: proxyConfigurationSchema,
    creates: true,
    showsSecret: ['XksProxyAuthenticationCredential.RawSecretAccessKey'],
  },
  removeCredential: {
    method: 'delete',
    path: '/api/endpoints/{id}/credentials/{credentialId}',
    needs: 'endpoints:credentials',
    scope: { kind: 'endpoint', parameter: 'id' },
    summary: 'Remove a SigV4 credential',
    answer: endpointSchema,
  },
} as const satisfies RouteGroup;
