// What the service tells about itself: version, health, storage, erasure, locked memory.

import { z } from '@hono/zod-openapi';
import { clockSchema } from './clock-routes.ts';
import { identifier, listOf, moment, type RouteGroup } from './row.ts';

export const statusSchema = z
  .strictObject({
    version: z.string(),
    nodeVersion: z.string(),
    libcryptoVersion: z.string().openapi({ description: 'Of OpenSSL in the core.' }),
    startedAt: moment,
    rootEpoch: z.int(),
    health: z.strictObject({
      healthy: z.boolean(),
      at: moment,
      checks: z
        .array(
          z.strictObject({
            name: z.enum(['store', 'root-key', 'round-trip', 'clock', 'disk', 'database']),
            healthy: z.boolean(),
            detail: z.string(),
            durationMs: z.number(),
          }),
        )
        .readonly(),
    }),
    erasure: z.strictObject({
      fileSystem: z.string(),
      overwritesInPlace: z
        .boolean()
        .openapi({ description: 'false: the file system keeps copies; erasure is best effort' }),
      pendingKeys: z.int().openapi({ description: 'Destroyed keys that the next erasure run covers.' }),
      waitingKeys: z.int().openapi({
        description: 'Destroyed keys that are not unrecoverable because of copies that the service knows.',
      }),
      pendingObjects: z.int().openapi({
        description: 'Token objects whose replaced or destroyed values the next erasure run covers.',
      }),
      state: z.enum(['idle', 'waiting', 'running', 'blocked', 'failed']).openapi({
        description:
          'blocked: stored records cannot be opened and would be lost after the run, nodes do not take part, copies of the database are behind, or snapshot files are missing. failed: the run is retried.',
      }),
      failure: z.string().nullable(),
      waitsFor: z
        .enum(['destructions', 'copies', 'node'])
        .nullable()
        .openapi({
          description:
            'Of the state waiting. destructions: others of the next seconds share the run. copies: the WAL archive, or `replica_lag_seconds` for copies that ' +
            'the database does not show. node: no node that can run it has begun yet; it is the one with the duty `erasure`.',
        }),
      blockers: z
        .strictObject({
          since: moment,
          records: z
            .array(
              z.strictObject({
                kind: z.enum(['key', 'object', 'credential', 'other']),
                id: z.string(),
                name: z.string().nullable(),
                version: z.int(),
                copy: z.string(),
              }),
            )
            .readonly(),
          nodes: z
            .array(z.string())
            .readonly()
            .openapi({ description: 'Nodes that it waits for. Start or remove them.' }),
          standbys: z.array(z.string()).readonly().openapi({
            description:
              'Standbys, replication slots or the WAL archive of the database that have not stored the records under the new root key: bring them up to date, or drop their slots.',
          }),
          snapshots: z.array(identifier).readonly().openapi({
            description:
              'Snapshots whose files are missing: restore the files and verify the snapshots, or delete the snapshots.',
          }),
        })
        .nullable(),
    }),
    clock: clockSchema,
    store: z.strictObject({ dialect: z.string(), path: z.string().nullable() }),
    memory: z.strictObject({ capacity: z.int(), used: z.int(), keys: z.int(), locked: z.boolean() }),
    requestLog: z.strictObject({
      queued: z.int(),
      dropped: z.int().openapi({ description: 'Signed requests that could not be recorded since this node started.' }),
      droppedUnsigned: z.int().openapi({
        description: 'Requests without a valid signature that could not be recorded since this node started.',
      }),
    }),
  })
  .openapi('Status');
export type Status = z.output<typeof statusSchema>;

const jobSchema = z
  .strictObject({
    name: z.string().openapi({ example: 'scheduled snapshots' }),
    everySeconds: z.number().nullable().openapi({ description: 'null: at the times of `snapshots.schedule`.' }),
    node: z
      .string()
      .nullable()
      .openapi({ description: 'The node that does it for all; null: no node, at the moment.' }),
    here: z.boolean().openapi({
      description:
        'true: the node that answers does it. Otherwise the times and the failure are those of its own last run, if any: ask `node`.',
    }),
    running: z.boolean(),
    startedAt: moment.nullable().openapi({ description: 'Of the last run since this node started; null: none.' }),
    durationMs: z.int().nullable(),
    succeededAt: moment.nullable().openapi({ description: 'When a run last succeeded.' }),
    failure: z
      .strictObject({ since: moment, message: z.string() })
      .nullable()
      .openapi({ description: 'Set while the last run failed. The log of the node has the details.' }),
    nextAt: moment.nullable().openapi({ description: 'The earliest time of the next run.' }),
  })
  .openapi('Job');
export type Job = z.output<typeof jobSchema>;

export const statusRoutes = {
  jobs: {
    method: 'get',
    path: '/api/jobs',
    needs: 'status:read',
    tenancy: 'platform',
    summary: 'List the scheduled jobs',
    description: 'What the service does by the clock: when each job ran last, how it ended, and when it is next.',
    answer: listOf(jobSchema),
  },
  get: {
    method: 'get',
    path: '/api/status',
    needs: 'status:read',
    tenancy: 'platform',
    summary: 'Get the state of the service',
    answer: statusSchema,
  },
} as const satisfies RouteGroup;
