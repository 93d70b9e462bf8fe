// The networks and client certificates that may use the credentials of a TDE application.

import { useState } from 'react';
import { useFresh } from '../api/fresh.ts';
import type { Application } from '../api/types.ts';
import { applicationPath, applicationsPath } from './applications.ts';
import { Button } from './button.tsx';
import { AreaField } from './field.tsx';
import { FormDialog } from './form.tsx';
import { Facts, Panel } from './page.tsx';
import { ProblemView } from './problem-view.tsx';
import { Time } from './time.tsx';

const pemBlocks = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
/** Text that is not a certificate is sent unchanged: the service reports the fault. */
const certificatesIn = (text: string): readonly string[] => text.match(pemBlocks) ?? (text.trim() === '' ? [] : [text]);

const CallersDialog = ({ application, onClose }: { application: Application; onClose: () => void }) => {
  const path = applicationPath(application.id);
  const fresh = useFresh<Application>(path);
  const [networks, setNetworks] = useState(application.callers.networks.join('\n'));
  const [certificates, setCertificates] = useState(application.callers.certificates.map(({ pem }) => pem).join(''));
  return (
    <FormDialog<Application>
      title={`Allowed callers of “${application.name}”`}
      wide
      call={{
        method: 'PUT',
        path: `${path}/callers`,
        body: {
          networks: networks.split(/[\s,]+/).filter((network) => network !== ''),
          certificates: certificatesIn(certificates),
        },
      }}
      ifMatch={fresh.data?.etag}
      submitLabel="Save callers"
      submitDisabled={fresh.data === undefined}
      onCancel={onClose}
      renews={[applicationsPath]}
      done={`Allowed callers of “${application.name}” saved`}
    >
      {(fault) => (
        <>
          <p>A caller that is not allowed is refused at its next call, even on an open connection.</p>
          <AreaField
            label="Networks"
            optional
            value={networks}
            onValue={setNetworks}
            fault={fault('networks')}
            placeholder="192.0.2.0/24"
            help="One address or network (CIDR) per line. Leave empty to allow any address."
          />
          <AreaField
            label="Client certificates"
            optional
            value={certificates}
            onValue={setCertificates}
            fault={fault('certificates')}
            placeholder="-----BEGIN CERTIFICATE-----"
            help="PEM: the certificate of each database host. Leave empty to require none."
          />
          {fresh.error !== null && <ProblemView error={fresh.error} onRetry={() => void fresh.refetch()} compact />}
        </>
      )}
    </FormDialog>
  );
};

export const Callers = ({ application }: { application: Application }) => {
  const [changing, setChanging] = useState(false);
  const { networks, certificates } = application.callers;
  return (
    <Panel
      title="Allowed callers"
      description="Networks and client certificates that may use the credentials of this application."
      actions={<Button onClick={() => setChanging(true)}>Change callers</Button>}
    >
      <Facts
        items={[
          ['Networks', networks.length === 0 ? 'Any address' : networks.join(', ')],
          [
            'Client certificates',
            certificates.length === 0 ? (
              'None required'
            ) : (
              <ul key="certificates">
                {certificates.map(({ fingerprint, subject, expiresAt }) => (
                  <li key={fingerprint}>
                    {subject}, expires <Time value={expiresAt} /> <code className="break-all">{fingerprint}</code>
                  </li>
                ))}
              </ul>
            ),
          ],
        ]}
      />
      {changing && <CallersDialog application={application} onClose={() => setChanging(false)} />}
    </Panel>
  );
};
