// First setup: the root key is encrypted, and a backup of it is stored elsewhere.
import { useState } from 'react';
import { command } from '../../../../../base/command-line.ts';
import type { Root } from '../../api/types.ts';
import { SelectField } from '../../ui/fields/field.tsx';
import { Async } from '../../ui/page/async.tsx';
import { ConfigLines, Lines, tomlTable, useSettings } from '../../ui/page/config-lines.tsx';
import { Facts } from '../../ui/page/page.tsx';
import { AcceptRisk, Finding, type Step, useWatched } from './shared.tsx';

const providerTypes = [
  { value: 'pkcs11', text: 'A hardware security module (PKCS#11)' },
  { value: 'passphrase', text: 'A passphrase' },
  { value: 'file', text: 'A key file on another medium' },
] as const;
type ProviderType = (typeof providerTypes)[number]['value'];

const providerLines: Readonly<Record<ProviderType, string>> = {
  pkcs11: tomlTable('[[root.providers]]', {
    name: 'hsm',
    type: 'pkcs11',
    module: '/usr/lib/softhsm/libsofthsm2.so',
    token: 'dke',
    key: 'dke-root',
    pin_file: '/etc/dke/hsm.pin',
  }),
  passphrase: tomlTable('[[root.providers]]', { name: 'people', type: 'passphrase' }),
  file: tomlTable('[[root.providers]]', { name: 'stick', type: 'file', path: '/media/dke/root-provider.key' }),
};
const providerNames: Readonly<Record<ProviderType, string>> = { pkcs11: 'hsm', passphrase: 'people', file: 'stick' };

export const RootProtection = ({ step }: { step: Step }) => {
  const [type, setType] = useState<ProviderType>('pkcs11');
  const root = useWatched<Root>('/api/root');
  const path = useSettings()?.items.find(({ name }) => name === 'root.path')?.value;
  return (
    <>
      <p className="max-w-prose text-muted">
        Everything is sealed under the root key. Anyone who has its file and a copy of the database has every key.
        Without the file, the database cannot be opened.
      </p>
      <Async query={root} lines={2}>
        {({ providers, epoch, fileSystem, overwritesInPlace }) => (
          <>
            <Finding>{step.finding}</Finding>
            <Facts
              items={[
                [
                  'File',
                  <code key="path" className="wrap-anywhere">
                    {path == null ? 'root.key in the data directory' : JSON.parse(path)}
                  </code>,
                ],
                ['Epoch', String(epoch)],
                [
                  'Opened by',
                  providers
                    .filter(({ opened }) => opened)
                    .map(({ name }) => name)
                    .join(', ') || 'the file itself',
                ],
                ['File system', `${fileSystem}${overwritesInPlace ? '' : ': erasure of old root keys is best effort'}`],
              ]}
            />
            <details className="rounded-lg border border-line">
              <summary className="min-h-9 px-3 py-2 font-medium">
                {providers.every(({ createdAt }) => createdAt === null)
                  ? 'Protect with HSM or passphrase'
                  : 'Add another provider'}
              </summary>
              <div className="space-y-3 border-t border-line p-3">
                <SelectField
                  label="Provider"
                  value={type}
                  onValue={(value) => setType(value as ProviderType)}
                  choices={[...providerTypes]}
                />
                <ConfigLines value={providerLines[type]} />
                <p>Then run this on the host of the service. It stops and starts the service:</p>
                <Lines
                  label="commands"
                  value={[
                    'systemctl stop dke-server',
                    command`sudo -u dke dke root add-provider ${providerNames[type]}`,
                    'systemctl start dke-server',
                    command`dke root rotate --wait`,
                  ].join('\n')}
                />
                <p className="text-muted">
                  The rotation at the end makes copies of the unencrypted file useless. We recommend two providers: one
                  for unattended starts, and one in case the first is lost.
                </p>
              </div>
            </details>
          </>
        )}
      </Async>
      <AcceptRisk step={step} text="Accept the risk: keep the root key unencrypted" />
    </>
  );
};

export const RootBackup = ({ step }: { step: Step }) => (
  <>
    <Finding>{step.finding}</Finding>
    <p className="max-w-prose">
      Create a backup on the host of the service and store it separately, never with a backup of the database. DKE
      records it, and this step is then done. Each rotation and each erasure run replaces the root key. The backup is
      then useless, and this step must be repeated.
    </p>
    <Lines label="commands" value={command`sudo -u dke dke root backup --out /var/lib/dke/root-backup.key`} />
    <AcceptRisk step={step} text="Accept the risk: DKE knows of no backup of its root key" />
  </>
);
