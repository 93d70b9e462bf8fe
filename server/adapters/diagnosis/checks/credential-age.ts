// SigV4: credentials are exchanged every quarter, and an old unused one is removed.

import { command } from '../../../base/command-line.ts';
import { ok, warning } from '../../../base/diagnostic-checks.ts';
import type { EndpointCheck } from '../context.ts';

const day = 86_400_000;
const quarter = 92 * day;
const silence = 7 * day;

export const credentialAge: EndpointCheck = {
  id: 'credential-age',
  layer: 'sigv4',
  title: 'credentials are in use and recent',
  fault: 'a credential is unused or old',
  needs: [],
  run: ({ endpoint, now }) => {
    const time = now();
    const [newest, ...older] = [...endpoint.credentials].sort((a, b) => b.createdAt - a.createdAt);
    if (newest === undefined)
      return warning('the endpoint has no credential', command`dke endpoint credential add ${endpoint.name}`);
    const silent = older.find(({ lastUsedAt, createdAt }) => time - (lastUsedAt ?? createdAt) > silence);
    if (silent !== undefined)
      return warning(
        `${silent.accessKeyId} has not been used for 7 days`,
        command`dke endpoint credential remove ${endpoint.name} ${silent.id}`,
      );
    const days = Math.floor((time - newest.createdAt) / day);
    return time - newest.createdAt > quarter
      ? warning(`${newest.accessKeyId} is ${days} days old`, 'replace it: use a credential for at most three months')
      : ok(`${newest.accessKeyId}: ${days} days`);
  },
};
