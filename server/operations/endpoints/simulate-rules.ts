// What the rules of a key store endpoint say to invented requests: the active rules, and others
// that may become active. Nothing is changed and nothing is recorded.

import { otherWork } from '../../base/next-turn.ts';
import { decideByRules } from '../../domain/authorization-rule.ts';
import type { Ports } from '../../ports/ports.ts';
import { showEndpoint } from '../shared/find.ts';
import { checkRules } from './endpoint-settings.ts';
import type { EndpointOperations } from './endpoints-operations.ts';

type RuleDecision = Awaited<ReturnType<EndpointOperations['simulateRules']>>[number];

export const simulateRules =
  ({ store }: Pick<Ports, 'store'>): EndpointOperations['simulateRules'] =>
  async ({ tenantId }, id, { rules, requests }) => {
    const { settings } = await showEndpoint(store.read, tenantId, id);
    if (rules !== undefined) checkRules(rules, settings.rules);
    const decisions: RuleDecision[] = [];
    for (const request of requests) {
      const { effect, rule } = decideByRules(settings.rules, request);
      decisions.push({ ...decideByRules(rules ?? settings.rules, request), current: { effect, rule } });
      // All patterns that search, against the longest texts, take milliseconds a request.
      await otherWork();
    }
    return decisions;
  };
