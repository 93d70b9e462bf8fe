// SigV4: recent signatures were accepted. A failure after the last success may be a fault of now, or a request that is not the cloud's: a
// signature that is not valid does not show who sent it.

import { notAsked, ok, warning } from '../../../base/checks.ts';
import { refusalReasons } from '../../../base/refusal-reasons.ts';
import { type EndpointCheck, suspected } from '../context.ts';

export const callerSignatures: EndpointCheck = {
  id: 'caller-signatures',
  layer: 'sigv4',
  title: "the cloud's signatures are accepted",
  needs: [],
  run: ({ recent, unsigned, endpoint }) => {
    const failures = unsigned.filter(({ errorName }) => errorName === 'AuthenticationFailedException');
    const [latest] = failures;
    const [passed] = recent;
    if (latest === undefined)
      return passed === undefined ? notAsked('no requests in the last hour') : ok('none was refused in the last hour');
    const reason = latest.reason ?? 'the reason was not recorded';
    if (passed !== undefined && passed.at >= latest.at)
      return warning(`${failures.length} were refused in the last hour, the latest: ${reason}`);
    const fix = reason.startsWith(refusalReasons.unknownKey)
      ? `that credential was removed or never existed: enter a credential of this endpoint in the cloud key store (dke endpoint credential list ${endpoint.name})`
      : reason.startsWith(refusalReasons.mismatch)
        ? 'the cloud key store has another secret: add a credential here, and enter it there'
        : 'see the reason';
    return suspected(
      'XksProxyIncorrectAuthenticationCredentialException',
      `the latest request, from ${latest.peer ?? 'an unknown address'}, was refused: ${reason}. If the cloud sent it, this is the cause`,
      fix,
    );
  },
};
