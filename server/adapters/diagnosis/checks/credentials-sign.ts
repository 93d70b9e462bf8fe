// SigV4: each live credential signs, and passes.

import { notAsked, ok } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, foretold, wantsCertificate } from '../context.ts';
import { diagnosticMetadata } from '../probe.ts';

export const credentialsSign: EndpointCheck = {
  id: 'credentials-sign',
  layer: 'sigv4',
  title: 'requests that are signed with each credential are accepted',
  fault: 'requests that are signed with a credential are refused',
  needs: ['health-status-node'],
  run: async (context) => {
    if (wantsCertificate(context))
      return notAsked('the endpoint requires a client certificate, which only the cloud has');
    for (const credential of context.credentials) {
      const body = { requestMetadata: diagnosticMetadata() };
      const { status, members } = await context.prober.post('node', '/health', body, credential);
      if (status !== 200)
        return foretold(
          'no-credential',
          `${credential.accessKeyId}: ${status} ${String(members?.errorName ?? '')}`,
          'add a new credential, enter it in the cloud key store, then remove this one',
        );
    }
    return ok(context.credentials.map(({ accessKeyId }) => accessKeyId).join(', '));
  },
};
