// What people who are signed in do with themselves. A token has no profile.

import { z } from '@hono/zod-openapi';
import { pageOf, pageQuery, type RouteGroup } from './row.ts';
import { passwordText, sessionSchema } from './session.ts';
import { openSessionSchema } from './sessions.ts';
import { userSchema } from './users.ts';

export const profileRoutes = {
  get: {
    method: 'get',
    path: '/api/profile',
    needs: 'signed-in',
    unfinished: ['second-factor', 'new-password', 'enrolment'],
    summary: 'Who I am',
    answer: userSchema,
  },
  changePassword: {
    method: 'post',
    path: '/api/profile/password',
    needs: 'signed-in',
    unfinished: ['new-password'],
    summary: 'Choose a new password',
    description: 'Every other session of the user ends, and this one gets a new cookie.',
    body: z.strictObject({ current: passwordText.optional(), password: passwordText }).openapi('PasswordChange'),
    secrets: ['current', 'password'],
    answer: sessionSchema,
    setsSession: true,
  },
  sessions: {
    method: 'get',
    path: '/api/profile/sessions',
    needs: 'signed-in',
    summary: 'My sessions',
    query: pageQuery,
    answer: pageOf(openSessionSchema),
  },
  endSession: {
    method: 'delete',
    path: '/api/profile/sessions/{id}',
    needs: 'signed-in',
    summary: 'End one of my sessions',
    answer: openSessionSchema,
  },
} as const satisfies RouteGroup;
