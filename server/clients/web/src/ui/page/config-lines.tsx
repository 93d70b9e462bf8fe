// Lines for settings that only the configuration file can have. The service reads them at its next
// start.

import { useQuery } from '@tanstack/react-query';
import { send } from '../../api/client.ts';
import type { Settings } from '../../api/types.ts';
import { CopyButton } from './copy.tsx';

type Value = string | number | boolean;

/** A table of TOML; empty values are left out. */
export const tomlTable = (header: string, values: Readonly<Record<string, Value | undefined>>): string =>
  [
    header,
    ...Object.entries(values).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [`${name} = ${JSON.stringify(value)}`],
    ),
  ].join('\n');

export const Lines = ({ label, value }: { label: string; value: string }) => (
  <div className="flex items-start justify-between gap-2 rounded-md bg-sunken py-1 pr-1 pl-3">
    <pre className="min-w-0 py-1 text-xs wrap-anywhere whitespace-pre-wrap">{value}</pre>
    <CopyButton value={value} label={label} />
  </div>
);

/** Tests the connection from a database host to the service. Runs on that host. */
export const testConnection = 'sudo -u oracle dke doctor --conf /etc/dke/pkcs11.toml';

export const useSettings = () =>
  useQuery({
    queryKey: ['/api/settings'],
    queryFn: ({ signal }) => send<Settings>({ method: 'GET', path: '/api/settings' }, { signal }),
    staleTime: 60_000,
  }).data;

export const ConfigLines = ({ value }: { value: string }) => {
  const source = useSettings()?.source;
  return (
    <div className="space-y-1">
      <p>
        Add to <code className="wrap-anywhere">{source ?? 'dke.toml'}</code>:
      </p>
      <Lines label="lines of dke.toml" value={value} />
    </div>
  );
};
