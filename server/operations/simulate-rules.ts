// What the rules of a key store endpoint say to requests that nobody has made: those that hold, and others that may come to hold. Nothing is
// changed and nothing is recorded.

import { decideByRules } from '../domain/authorization-rule.ts';
import type { Ports } from '../ports/ports.ts';
import { checkRuleNames } from './endpoint-settings.ts';
import { findEndpoint } from './find.ts';
import type { EndpointOperations } from './index.ts';

export const simulateRules =
  ({ store }: Pick<Ports, 'store'>): EndpointOperations['simulateRules'] =>
  async ({ tenantId }, id, { rules, requests }) => {
    const { settings } = await findEndpoint(store.read, tenantId, id);
    if (rules !== undefined) checkRuleNames(rules);
    return requests.map((request) => {
      const { effect, rule } = decideByRules(settings.rules, request);
      return { ...decideByRules(rules ?? settings.rules, request), current: { effect, rule } };
    });
  };
