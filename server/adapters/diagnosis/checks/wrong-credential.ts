// SigV4: what is signed with another secret is refused.

import { failed, notAsked, ok } from '../../../base/diagnostic-checks.ts';
import { type EndpointCheck, wantsCertificate } from '../context.ts';
import { diagnosticMetadata } from '../probe.ts';

export const wrongCredential: EndpointCheck = {
  id: 'wrong-credential',
  layer: 'sigv4',
  title: 'a wrong signature is refused',
  fault: 'a wrong signature is accepted',
  needs: ['credentials-sign'],
  run: async (context) => {
    const [credential] = context.credentials;
    if (credential === undefined || wantsCertificate(context)) return notAsked('the endpoint has no credential');
    const body = { requestMetadata: diagnosticMetadata() };
    const { status } = await context.prober.forge('node', '/health', body, credential);
    return status === 401
      ? ok('401')
      : failed(`a wrong signature was answered ${status}`, 'stop the service and report this: anyone can use keys');
  },
};
