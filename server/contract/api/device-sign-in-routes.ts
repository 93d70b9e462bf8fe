// `dke login` through the browser: the roles of the Device Authorization Grant (RFC 8628) in the
// JSON of this API. A command asks, a person who is signed in to the console decides, and the
// command takes the answer once.

import { z } from '@hono/zod-openapi';
import { roleNames } from '../../domain/access.ts';
import { moment, orNull, type RouteGroup } from './row.ts';
import { issuedTokenSchema, newGrantSchema } from './tokens-routes.ts';

/** The longest life of a token that a command gets so. */
export const mostHours = 24;

const hours = z.int().min(1).max(mostHours);
const host = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be the name of a host: 1 to 64 letters, digits and . _ -');
const deviceCode = z
  .string()
  .regex(/^[A-Za-z0-9_-]{43}$/, 'is not a device code')
  .openapi({ example: 'A'.repeat(43), description: 'The code that only the command has.' });
const userCode = z
  .string()
  .min(1)
  .max(32)
  .openapi({ example: 'WDJB-MJHT', description: 'The code that the command shows. Case and separators do not count.' });

const startedSchema = z
  .strictObject({
    deviceCode,
    userCode,
    url: z.string().openapi({ description: 'The page at which the person enters the code.' }),
    completeUrl: z.string().openapi({ description: 'The same page with the code, which browsers do not send.' }),
    expiresAt: moment,
    intervalSeconds: z.int().openapi({ description: 'The shortest time between two questions.' }),
  })
  .openapi('DeviceSignInStart');

const answerSchema = z
  .strictObject({
    state: z.enum(['pending', 'slow-down', 'refused', 'expired', 'issued']).openapi({
      description:
        'pending: ask again after `intervalSeconds`; slow-down: the same, and the interval has grown; refused: by the ' +
        'person, or because the approval is no longer valid; expired: also unknown, or taken before; issued: once.',
    }),
    intervalSeconds: z.int(),
    user: z.string().nullable().openapi({ description: 'The user whose token it is; null unless issued.' }),
    issued: orNull(issuedTokenSchema),
  })
  .openapi('DeviceSignInAnswer');

const requestSchema = z
  .strictObject({
    host: z.string().openapi({ description: 'What the command calls its host. Anyone can claim any name.' }),
    peer: z.string().nullable().openapi({ description: 'The address from which the command asked.' }),
    requestedAt: moment,
    expiresAt: moment,
    roles: z.array(z.enum(roleNames)).readonly().nullable().openapi({ description: 'Null: all of the person.' }),
    hours,
  })
  .openapi('DeviceSignInRequest');

export const deviceSignInRoutes = {
  start: {
    method: 'post',
    path: '/api/device-sign-in',
    needs: 'sign-in',
    attempt: true,
    summary: 'Ask for a sign-in in the browser',
    description: 'For a command. The codes are valid for ten minutes.',
    body: z
      .strictObject({
        host,
        roles: z.array(z.enum(roleNames)).min(1).max(20).optional().openapi({ description: 'All when absent.' }),
        hours: hours.optional().openapi({ default: 8 }),
      })
      .openapi('NewDeviceSignIn'),
    answer: startedSchema,
  },
  poll: {
    method: 'post',
    path: '/api/device-sign-in/token',
    needs: 'sign-in',
    attempt: 'poll',
    summary: 'Take the token of a sign-in in the browser',
    body: z.strictObject({ deviceCode }).openapi('DeviceSignInPoll'),
    answer: answerSchema,
  },
  end: {
    method: 'post',
    path: '/api/device-sign-in/end',
    needs: 'sign-in',
    attempt: true,
    summary: 'End the sign-in of a command',
    description:
      'Revokes a token of a user by its value. Answers the same for a value that is not valid (RFC 7009), and for a ' +
      'token that an administrator made for a program, which stays.',
    body: z.strictObject({ token: z.string().min(1).max(512) }).openapi('DeviceSignInEnd'),
    answer: null,
  },
  find: {
    method: 'post',
    path: '/api/device-sign-in/find',
    needs: 'signed-in',
    attempt: true,
    summary: 'Show who asks for a sign-in in the browser',
    body: z.strictObject({ userCode }).openapi('UserCode'),
    answer: requestSchema,
  },
  approve: {
    method: 'post',
    path: '/api/device-sign-in/approve',
    needs: 'signed-in',
    attempt: true,
    summary: 'Approve a sign-in of a command',
    description:
      'By a person whose sign-in is at most 15 minutes old. The token has these of their roles, all when absent, for ' +
      'so many hours. The approval ends with the session that gave it.',
    body: z
      .strictObject({ userCode, hours, grants: z.array(newGrantSchema).min(1).max(20).optional() })
      .openapi('DeviceSignInApproval'),
    answer: requestSchema,
  },
  refuse: {
    method: 'post',
    path: '/api/device-sign-in/refuse',
    needs: 'signed-in',
    attempt: true,
    summary: 'Refuse a sign-in of a command',
    body: z.strictObject({ userCode }).openapi('DeviceSignInRefusal'),
    answer: requestSchema,
  },
} as const satisfies RouteGroup;
export type DeviceSignInRequest = z.output<typeof requestSchema>;
