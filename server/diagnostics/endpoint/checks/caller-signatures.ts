// SigV4: what the cloud signed lately was accepted. The last word counts: a failure after the last success is a fault of now.

import { notAsked, ok, warning } from '../../../base/checks.ts';
import { refusalReasons } from '../../../base/refusal-reasons.ts';
import { type EndpointCheck, foretold } from '../context.ts';

export const callerSignatures: EndpointCheck = {
  id: 'caller-signatures',
  layer: 'sigv4',
  title: "the cloud's signatures are accepted",
  needs: [],
  run: ({ recent, endpoint }) => {
    const failures = recent.filter(({ errorName }) => errorName === 'AuthenticationFailedException');
    const [latest] = failures;
    const passed = recent.find(({ credentialId }) => credentialId !== null);
    if (latest === undefined)
      return passed === undefined
        ? notAsked('nobody called in the last hour')
        : ok('none was refused in the last hour');
    const reason = latest.reason ?? 'the reason was not recorded';
    if (passed !== undefined && passed.at >= latest.at)
      return warning(`${failures.length} were refused in the last hour, the latest: ${reason}`);
    const fix = reason.startsWith(refusalReasons.unknownKey)
      ? `that credential was removed or never was: enter one of this endpoint at the cloud (dke endpoint credential list ${endpoint.name})`
      : reason.startsWith(refusalReasons.mismatch)
        ? 'the cloud has another secret: add a credential here and enter it there'
        : 'see the reason';
    return foretold(
      'XksProxyIncorrectAuthenticationCredentialException',
      `the latest request of ${latest.peer ?? 'somebody'} was refused: ${reason}`,
      fix,
    );
  },
};
