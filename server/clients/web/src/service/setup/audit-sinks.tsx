// First setup: the audit log is also forwarded to a sink.
import { useState } from 'react';
import { command } from '../../../../../base/command-line.ts';
import type { AuditSink } from '../../api/types.ts';
import { SelectField, TextField } from '../../ui/fields/field.tsx';
import { Async } from '../../ui/page/async.tsx';
import { ConfigLines, Lines, tomlTable } from '../../ui/page/config-lines.tsx';
import { AcceptRisk, Finding, type Step, useWatched } from './shared.tsx';

const sinkTypes = [
  { value: 'syslog', text: 'Syslog (RFC 5424) over TLS' },
  { value: 'https', text: 'HTTPS with JSON (OCSF)' },
  { value: 'file', text: 'A file on this host' },
] as const;
type SinkType = (typeof sinkTypes)[number]['value'];

export const Sinks = ({ step }: { step: Step }) => {
  const [type, setType] = useState<SinkType>('syslog');
  const [target, setTarget] = useState('siem.example.com');
  const sinks = useWatched<{ readonly items: readonly AuditSink[] }>('/api/audit/sinks');
  const choose = (value: SinkType): void => {
    setType(value);
    setTarget(
      { syslog: 'siem.example.com', https: 'https://lake.example.com/in', file: '/var/log/dke/audit.ndjson' }[value],
    );
  };
  const lines = {
    syslog: tomlTable('[[audit.sinks]]', { name: 'siem', type, host: target, port: 6514 }),
    https: tomlTable('[[audit.sinks]]', { name: 'lake', type, url: target, token_file: '/etc/dke/lake.token' }),
    file: tomlTable('[[audit.sinks]]', { name: 'file', type, path: target }),
  } as const satisfies Record<SinkType, string>;
  return (
    <>
      <p className="max-w-prose text-muted">
        The audit log is signed and checked here. A copy on another host survives the loss of this host. You can add
        sinks only in the configuration file, so users of the console cannot choose where records go.
      </p>
      <Finding>{step.finding}</Finding>
      <Async query={sinks} lines={2}>
        {({ items }) =>
          items.length === 0 ? (
            <div className="space-y-3">
              <div className="grid gap-3 sm:grid-cols-2">
                <SelectField
                  label="Sink type"
                  value={type}
                  onValue={(value) => choose(value as SinkType)}
                  choices={[...sinkTypes]}
                />
                <TextField
                  label={{ syslog: 'Host', https: 'Address', file: 'Path' }[type]}
                  mono
                  value={target}
                  onValue={setTarget}
                />
              </div>
              <ConfigLines value={lines[type]} />
              <Lines label="command" value={['systemctl restart dke-server', command`dke audit sinks`].join('\n')} />
              <p className="text-muted">This page checks every few seconds whether records arrive at the sink.</p>
            </div>
          ) : (
            <ul className="space-y-1">
              {items.map(({ name, target: to, lag, failure }) => (
                <li key={name} className="wrap-anywhere">
                  <strong>{name}</strong>, <code>{to}</code>:{' '}
                  {failure === null
                    ? lag === 0
                      ? 'has all records'
                      : `${lag} records not delivered yet`
                    : `does not answer: ${failure.message}`}
                </li>
              ))}
            </ul>
          )
        }
      </Async>
      <AcceptRisk step={step} text="Accept the risk: keep the audit log locally only" />
    </>
  );
};
