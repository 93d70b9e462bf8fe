// The packages for database hosts that the service distributes.

import { z } from '@hono/zod-openapi';
import { listOf, type RouteGroup } from './row.ts';

const packageSchema = z
  .strictObject({
    name: z.string().openapi({ description: 'Of the file.', example: 'dke-provider_1.0.0_amd64.deb' }),
    package: z.string().openapi({ example: 'dke-provider' }),
    version: z.string().openapi({ example: '1.0.0' }),
    kind: z.enum(['deb', 'rpm']),
    architecture: z.enum(['x86_64', 'aarch64']),
    size: z.int().openapi({ description: 'Bytes.' }),
    sha256: z.string().openapi({ description: 'Of the file, in hexadecimal digits.' }),
  })
  .openapi('DistributedPackage');

export type DistributedPackage = z.output<typeof packageSchema>;

export const packageRoutes = {
  list: {
    method: 'get',
    path: '/api/packages',
    needs: 'applications:read',
    summary: 'List the packages for database hosts',
    description: 'The files in [server] packages_directory that its SHA256SUMS names. Empty if it is not configured.',
    answer: listOf(packageSchema),
  },
  download: {
    method: 'get',
    path: '/api/packages/{name}/file',
    needs: 'applications:read',
    summary: 'Download a package',
    description: 'The file is sent only if it matches its checksum.',
    answer: null,
    streams: ['application/octet-stream'],
  },
} as const satisfies RouteGroup;
