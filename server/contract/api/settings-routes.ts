// The settings of the service as they are: read-only here, for they come from dke.toml alone.

import { z } from '@hono/zod-openapi';
import type { RouteGroup } from './row.ts';

export const settingsSchema = z
  .strictObject({
    source: z.string().nullable().openapi({ description: 'The file; null: there is none, and the defaults apply.' }),
    items: z
      .array(
        z.strictObject({
          name: z.string().openapi({ example: 'server.port' }),
          value: z.string().nullable().openapi({ description: 'As JSON; null: not set.' }),
          origin: z.enum(['file', 'default']),
        }),
      )
      .readonly(),
  })
  .openapi('Settings');
export type Settings = z.output<typeof settingsSchema>;

export const settingsRoutes = {
  get: {
    method: 'get',
    path: '/api/settings',
    needs: 'status:read',
    tenancy: 'platform',
    summary: 'List the settings of the service and their sources',
    answer: settingsSchema,
  },
} as const satisfies RouteGroup;
