// Activity: what went wrong in the last hour, by name. That a rule denies requests may be wanted:
// it is a suspicion, and only while the latest request for a key was denied.

import { notAsked, ok, warning } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, suspected } from '../context.ts';

export const recentErrors: EndpointCheck = {
  id: 'recent-errors',
  layer: 'activity',
  title: 'no errors in the last hour',
  fault: 'there were errors in the last hour',
  needs: [],
  run: ({ recent }) => {
    if (recent.length === 0) return notAsked('no signed requests in the last hour');
    const counts = new Map<string, number>();
    for (const { errorName } of recent) if (errorName !== null) counts.set(errorName, (counts.get(errorName) ?? 0) + 1);
    if (counts.size === 0) return ok(`none of ${recent.length}`);
    const list = [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `${count} ${name}`);
    const evidence = `of ${recent.length}: ${list.join(', ')}`;
    const latest = recent.find(({ externalKeyId }) => externalKeyId !== null);
    return latest?.errorName === 'AccessDeniedException'
      ? suspected('denied', `${evidence}; the latest request for a key was ${latest.reason ?? 'denied'}`)
      : warning(evidence, 'the request log has the reason of each');
  },
};
