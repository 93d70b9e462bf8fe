// Health: a signed GetHealthStatus answers as the proxy protocol wants it.

import { command } from '../../../base/command-line.ts';
import { notAsked, ok } from '../../../base/diagnostic-checks.ts';
import { complaintOfHealth } from '../../../base/xks-answers.ts';
import { causeOfAnswer, type EndpointCheck, foretold, wantsCertificate } from '../context.ts';
import { diagnosticMetadata, type View } from '../probe.ts';

export const healthStatus = (view: View): EndpointCheck => ({
  id: `health-status-${view}`,
  layer: 'health',
  title: view === 'node' ? 'GetHealthStatus answers at this node' : 'GetHealthStatus answers through the public name',
  fault:
    view === 'node'
      ? 'GetHealthStatus does not answer at this node'
      : 'GetHealthStatus does not answer through the public name',
  needs: ['endpoint-enabled', view === 'node' ? 'node-listens' : 'public-health'],
  run: async (context) => {
    const [credential] = context.credentials;
    if (credential === undefined)
      return foretold(
        'no-credential',
        'the endpoint has no credential',
        command`dke endpoint credential add --out proxy.json ${context.endpoint.name}`,
      );
    if (wantsCertificate(context))
      return notAsked('the endpoint requires a client certificate, which only the cloud has');
    const body = { requestMetadata: diagnosticMetadata() };
    const answer = await context.prober.post(view, '/health', body, credential);
    const { status, members, durationMs } = answer;
    if (status !== 200)
      return foretold(
        causeOfAnswer(answer, '/health'),
        `it answers ${status} ${String(members?.errorName ?? 'without errorName')}`,
        'proxies in front of the service must forward path, headers and body unchanged',
      );
    const wrong = complaintOfHealth(members);
    return wrong === undefined
      ? ok(`fleet size ${String(members?.xksProxyFleetSize)}, ${durationMs.toFixed(0)} ms`)
      : foretold('answers-changed', `the answer is malformed: ${wrong}`);
  },
});
