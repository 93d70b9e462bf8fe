// Handlers of `dke login` through the browser.

import { toRfc3339 } from '../../../base/time.ts';
import type { DeviceSignInRequest } from '../../../contract/api/device-sign-in-routes.ts';
import type { Operations } from '../../../operations/index.ts';
import type { DeviceRequest } from '../../../operations/people/people-operations.ts';
import { representToken } from '../represent.ts';
import type { Handlers } from './handler.ts';
import { ownSession } from './session-handlers.ts';

const representRequest = ({
  host,
  peer,
  requestedAt,
  expiresAt,
  roles,
  hours,
}: DeviceRequest): DeviceSignInRequest => ({
  host,
  peer,
  requestedAt: toRfc3339(requestedAt),
  expiresAt: toRfc3339(expiresAt),
  roles,
  hours,
});

export const deviceSignInHandlers = ({ deviceSignIn }: Operations): Handlers['deviceSignIn'] => ({
  start: async ({ body, from }) => {
    const { expiresAt, ...started } = await deviceSignIn.start(body, from);
    return { ...started, expiresAt: toRfc3339(expiresAt) };
  },
  poll: async ({ body, from }) => {
    const { state, intervalSeconds, issued } = await deviceSignIn.poll(body.deviceCode, from);
    return {
      state,
      intervalSeconds,
      user: issued?.user ?? null,
      issued: issued && { record: representToken(issued.record), token: issued.token },
    };
  },
  end: async ({ body, from }) => {
    await deviceSignIn.end(body.token, from);
    return undefined;
  },
  find: async ({ session, body, from }) =>
    representRequest(await deviceSignIn.find(ownSession(session), body.userCode, from)),
  approve: async ({ session, body: { userCode, ...chosen }, from }) =>
    representRequest(await deviceSignIn.approve(ownSession(session), userCode, chosen, from)),
  refuse: async ({ session, body, from }) =>
    representRequest(await deviceSignIn.refuse(ownSession(session), body.userCode, from)),
});
