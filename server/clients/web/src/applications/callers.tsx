// The networks and client certificates that may use the credentials of a TDE application.

import { useState } from 'react';
import { applicationPath, applicationsPath } from '../api/paths.ts';
import type { Application } from '../api/types.ts';
import { AreaField } from '../ui/fields/field.tsx';
import { EditDialog, type Fields } from '../ui/forms/edit-dialog.tsx';
import { Button } from '../ui/page/button.tsx';
import { Facts, Panel } from '../ui/page/page.tsx';
import { Time } from '../ui/page/time.tsx';

const pemBlocks = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
/** Text that is not a certificate is sent unchanged: the service reports the fault. */
const certificatesIn = (text: string): readonly string[] => text.match(pemBlocks) ?? (text.trim() === '' ? [] : [text]);

interface CallersBody {
  readonly networks: readonly string[];
  readonly certificates: readonly string[];
}

const CallersFields = ({ first, onBody, fault }: Fields<Application, CallersBody>) => {
  const [networks, setNetworks] = useState(first.networks.join('\n'));
  const [certificates, setCertificates] = useState(first.certificates.join(''));
  const change = (changed: { readonly networks?: string; readonly certificates?: string }): void => {
    const texts = { networks, certificates, ...changed };
    setNetworks(texts.networks);
    setCertificates(texts.certificates);
    onBody({
      networks: texts.networks.split(/[\s,]+/).filter((network) => network !== ''),
      certificates: certificatesIn(texts.certificates),
    });
  };
  return (
    <>
      <p>A caller that is not allowed is refused at its next call, even on an open connection.</p>
      <AreaField
        label="Networks"
        optional
        value={networks}
        onValue={(text) => change({ networks: text })}
        fault={fault('networks')}
        placeholder="192.0.2.0/24"
        help="One address or network (CIDR) per line. Leave empty to allow any address."
      />
      <AreaField
        label="Client certificates"
        optional
        value={certificates}
        onValue={(text) => change({ certificates: text })}
        fault={fault('certificates')}
        placeholder="-----BEGIN CERTIFICATE-----"
        help="PEM: the certificate of each database host. Leave empty to require none."
      />
    </>
  );
};

const CallersDialog = ({ application, onClose }: { application: Application; onClose: () => void }) => {
  const path = applicationPath(application.id);
  return (
    <EditDialog<Application, CallersBody>
      title={`Allowed callers of “${application.name}”`}
      wide
      path={path}
      bodyOf={({ callers }) => ({
        networks: callers.networks,
        certificates: callers.certificates.map(({ pem }) => pem),
      })}
      callOf={(body) => ({ method: 'PUT', path: `${path}/callers`, body })}
      names={{ networks: 'Networks', certificates: 'Client certificates' }}
      submitLabel="Save callers"
      onClose={onClose}
      renews={[applicationsPath]}
      done={`Allowed callers of “${application.name}” saved`}
    >
      {(fields) => <CallersFields {...fields} />}
    </EditDialog>
  );
};

export const Callers = ({ application }: { application: Application }) => {
  const [changing, setChanging] = useState(false);
  const { networks, certificates } = application.callers;
  return (
    <Panel
      title="Allowed callers"
      description="Networks and client certificates that may use the credentials of this application."
      actions={
        <Button needs="applications:manage" opens onClick={() => setChanging(true)}>
          Change callers
        </Button>
      }
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
