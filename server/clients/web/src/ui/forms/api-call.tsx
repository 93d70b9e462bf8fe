// The call behind a form, as text: what the page sends is what a script can send, as curl or with
// the `dke` command.

import { useId } from 'react';
import { type ApiCall, formatTarget } from '../../api/client.ts';
import { formatCommand } from '../../api/command.ts';
import { CopyButton } from '../page/copy.tsx';
import { Icon } from '../page/icon.tsx';

/**
 * The call as a curl command; the bearer token is read from a file, so that it does not reach the
 * process list.
 */
const formatCurl = (call: ApiCall, ifMatch?: string): string => {
  const lines = [
    `curl --request ${call.method} '${location.origin}${formatTarget(call)}'`,
    '--header @authorization.txt',
  ];
  if (ifMatch !== undefined) lines.push(`--header 'if-match: ${ifMatch}'`);
  if (call.body !== undefined) {
    const body = JSON.stringify(call.body).replaceAll("'", "'\\''");
    lines.push("--header 'content-type: application/json'", `--data '${body}'`);
  }
  return lines.join(' \\\n  ');
};

interface ApiCallViewProps {
  readonly call: ApiCall;
  /** The entity tag of what the call replaces. */
  readonly ifMatch?: string | undefined;
  readonly secretBody?: boolean;
}

export const ApiCallView = ({ call, ifMatch, secretBody = false }: ApiCallViewProps) => {
  const id = useId();
  const target = formatTarget(call);
  const command = formatCommand(call);
  const body =
    call.body === undefined ? null : secretBody ? '(contains a secret, not shown)' : JSON.stringify(call.body, null, 2);
  return (
    <details className="group rounded-lg border border-line bg-sunken text-xs">
      <summary
        aria-labelledby={id}
        className="flex min-h-9 list-none items-center gap-2 rounded-lg px-3 py-1.5 select-none [&::-webkit-details-marker]:hidden"
      >
        <Icon name="chevron" className="size-3.5 text-muted transition-transform group-open:rotate-90" />
        <span id={id} className="min-w-0 truncate">
          <span className="text-muted">API call </span>
          <code className="font-semibold">{call.method}</code> <code>{target}</code>
        </span>
      </summary>
      <div className="space-y-3 border-t border-line px-3 py-2.5">
        <div className="space-y-2">
          <p>
            <code className="font-semibold">{call.method}</code> <code className="break-all">{target}</code>
          </p>
          {body !== null && <pre className="wrap-anywhere whitespace-pre-wrap">{body}</pre>}
          {!secretBody && (
            <div className="-ml-1.5 flex items-center">
              <CopyButton value={formatCurl(call, ifMatch)} label="as curl command" />
              <span className="text-muted">as a curl command</span>
            </div>
          )}
        </div>
        {command !== null && (
          <div className="flex items-start justify-between gap-2 border-t border-line pt-2">
            <p className="min-w-0 py-1">
              <span className="sr-only">As a dke command: </span>
              <code data-command="" className="wrap-anywhere">
                {command}
              </code>
            </p>
            <CopyButton value={command} label="dke command" />
          </div>
        )}
      </div>
    </details>
  );
};
