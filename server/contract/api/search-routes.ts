// Search over what the lists hold, and for the ids that the logs have.

import { z } from '@hono/zod-openapi';
import { type Found, searchFields, searchKindNames } from '../../domain/search-terms.ts';
import { identifier, type RouteGroup } from './row.ts';

const kind = z.enum(searchKindNames);

export const foundSchema = z
  .strictObject({
    kind,
    id: z.string().openapi({ description: 'For a log record: the id that was searched for.' }),
    name: z.string(),
    foundIn: z.enum(searchFields),
    tenantId: identifier.nullable().openapi({ description: 'Null: the platform.' }),
    state: z.string().nullable().openapi({ description: 'Of a key: its `effectiveState`.' }),
    page: z.string().openapi({
      description: 'Its path in the console',
      example: '/keys/01981d2c-7c1f-7b35-9a04-52a1be40c0de',
    }),
    api: z
      .string()
      .openapi({ description: 'Path in this API.', example: '/api/keys/01981d2c-7c1f-7b35-9a04-52a1be40c0de' }),
  } satisfies Record<Exclude<keyof Found, 'field'> | 'foundIn' | 'page' | 'api', z.ZodType>)
  .openapi('Found');
export type FoundItem = z.output<typeof foundSchema>;

const searchResult = z
  .strictObject({
    items: z.array(foundSchema).readonly(),
    more: z.array(kind).readonly(),
    searched: z.array(kind).readonly(),
  })
  .openapi('SearchResult');
export type SearchResult = z.output<typeof searchResult>;

export const searchRoutes = {
  find: {
    method: 'get',
    path: '/api/search',
    needs: 'signed-in',
    summary: 'Search names, labels, users and ids',
    description:
      'Finds names by the beginning of a word, ignoring case and accents: `payroll` finds `Prod-Payroll.2026`, the middle of a word finds nothing. ' +
      'Several words are found in a row or, among the first 2,000 items with the rarest word, in any order. Ids are found by their beginning or their last part; ' +
      'request ids and ids in the audit log by the whole id. Items are sorted by kind, then by name; `more` names the kinds with further items. ' +
      "Finds only what the caller's lists show; `searched` names the kinds that were searched.",
    query: z.strictObject({
      q: z.string().min(1, 'must not be empty').max(200, 'must be at most 200 characters'),
      kind: z
        .string()
        .transform((text) => text.split(','))
        .pipe(z.array(kind))
        .optional()
        .openapi({
          type: 'string',
          description: `Only these kinds, separated by commas: ${searchKindNames.join(', ')}.`,
        }),
      limit: z
        .string()
        .regex(/^[1-9][0-9]{0,2}$/, 'must be a whole number from 1 to 100')
        .transform(Number)
        .refine((limit) => limit <= 100, 'must be at most 100')
        .optional()
        .openapi({ type: 'integer', minimum: 1, maximum: 100, default: 10, description: 'The maximum for each kind.' }),
    }),
    answer: searchResult,
  },
} as const satisfies RouteGroup;
