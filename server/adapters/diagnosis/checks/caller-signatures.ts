// SigV4: recent signatures were accepted. A failure after the last success is a fault of now where
// the request names a credential of this endpoint, live or removed. Any other may be a request that
// is not the cloud's: its signature does not show who sent it. One to a path that no endpoint has
// is evidence by the same rule.

import { command } from '../../../base/command-line.ts';
import { notAsked, ok, warning } from '../../../base/diagnostic-checks.ts';
import { refusalReasons } from '../../../base/refusal-reasons.ts';
import { xksProxyUriPath } from '../../../domain/endpoint.ts';
import type { XksRequestRecord } from '../../../ports/xks-directory.ts';
import { type EndpointCheck, foretold, suspected } from '../context.ts';

/** The access key id of a request that was refused because no credential has it. */
const unknownKeyOf = (reason: string | null): string | undefined =>
  reason?.startsWith(refusalReasons.unknownKey) === true
    ? reason.slice(refusalReasons.unknownKey.length + 1)
    : undefined;

export const callerSignatures: EndpointCheck = {
  id: 'caller-signatures',
  layer: 'sigv4',
  title: "the cloud's signatures are accepted",
  fault: "the cloud's signatures are refused",
  needs: [],
  run: ({ recent, unsigned, astray, endpoint, removedAccessKeyIds, publicUrl }) => {
    const failures = unsigned.filter(({ errorName }) => errorName === 'AuthenticationFailedException');
    const [passed] = recent;
    const later = failures.filter(({ at }) => passed === undefined || at > passed.at);
    /** Whether it names a credential of this endpoint. */
    const isOurs = ({ reason }: XksRequestRecord): boolean =>
      reason?.startsWith(refusalReasons.mismatch) === true || removedAccessKeyIds.has(unknownKeyOf(reason) ?? '');
    const lost = astray.find(({ at }) => passed === undefined || at > passed.at);
    if (lost !== undefined)
      return foretold(
        'wrong-address',
        `a request from ${lost.peer ?? 'an unknown address'} with an access key id of this endpoint was sent to a path that no endpoint has`,
        `set XksProxyUriEndpoint of the cloud key store to ${publicUrl.origin} and XksProxyUriPath to ${xksProxyUriPath(endpoint.prefix)}, ` +
          'and pass the path on unchanged',
      );
    const latest = later.find(isOurs) ?? later[0] ?? failures[0];
    if (latest === undefined)
      return passed === undefined ? notAsked('no requests in the last hour') : ok('none was refused in the last hour');
    const reason = latest.reason ?? 'the reason was not recorded';
    if (later.length === 0) return warning(`${failures.length} were refused in the last hour, the latest: ${reason}`);
    const what = `a request from ${latest.peer ?? 'an unknown address'} was refused: ${reason}`;
    const exception = 'wrong-credential';
    if (unknownKeyOf(latest.reason) !== undefined) {
      const fix = `enter a credential of this endpoint in the cloud key store (${command`dke endpoint credential list ${endpoint.name}`})`;
      return isOurs(latest)
        ? foretold(exception, `${what}, a credential that was removed from this endpoint`, fix)
        : suspected(exception, `${what}. If the cloud sent it, this is the cause`, fix);
    }
    return isOurs(latest)
      ? foretold(
          exception,
          `${what} that a credential of this endpoint makes`,
          'the cloud key store has another secret: add a credential here, and enter it there',
        )
      : suspected(exception, `${what}. If the cloud sent it, this is the cause`, 'see the reason');
  },
};
