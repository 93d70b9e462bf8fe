// Handlers of API tokens and roles.

import type { Operations } from '../../../operations/index.ts';
import { representPage, representRole, representToken } from '../represent.ts';
import type { Handlers } from './handler.ts';

export const tokensHandlers = ({ access, tokens }: Operations): Handlers['tokens'] => ({
  create: async ({ actor, grants: own, body: { name, expiresAt, kind, grants } }) => {
    const end = expiresAt === undefined || expiresAt === null ? null : Date.parse(expiresAt);
    const { record, token } = await tokens.create(actor, own, { name, expiresAt: end, kind, grants });
    return { id: record.id, answer: { record: representToken(record), token } };
  },
  list: async ({ actor, query }) => representPage(await tokens.list(actor, query), representToken),
  roles: () => Promise.resolve({ items: access.roles().map(representRole) }),
  rotateKey: ({ actor, grants: own, body }) => tokens.rotateKey(actor, own, body),
  endFormerKey: ({ actor, grants: own, body }) => tokens.endFormerKey(actor, own, body),
  revoke: async ({ actor, grants: own, path }) => representToken(await tokens.revoke(actor, own, path.id)),
});
