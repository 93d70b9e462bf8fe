// The access settings of a key store endpoint (rate, client certificate, rules), and the dialog
// that changes them.

import { useState } from 'react';
import { endpointPath, endpointsPath } from '../api/paths.ts';
import type { Endpoint, EndpointSettings } from '../api/types.ts';
import { AreaField, CheckField, TextField } from '../ui/fields/field.tsx';
import { EditDialog, type Fields } from '../ui/forms/edit-dialog.tsx';
import { Button } from '../ui/page/button.tsx';
import { Facts, Panel } from '../ui/page/page.tsx';
import { RuleList, readRules, ruleExample } from './authorization-rules.tsx';

/** The settings as the fields show them. */
const textsOf = ({ operatorProbes, rate, clientCertificate, rules }: EndpointSettings) => ({
  operatorProbes,
  perSecond: rate === null ? '' : String(rate.perSecond),
  burst: rate === null ? '' : String(rate.burst),
  authorities: clientCertificate?.authorities ?? '',
  commonName: clientCertificate?.commonName ?? '',
  rules: rules.length === 0 ? '' : JSON.stringify(rules, null, 2),
});

const SettingsFields = ({ first, onBody, fault }: Fields<Endpoint, EndpointSettings>) => {
  const [texts, setTexts] = useState(() => textsOf(first));
  const rules = readRules(texts.rules);
  const change = (changed: Partial<typeof texts>): void => {
    const next = { ...texts, ...changed };
    const { operatorProbes, perSecond, burst, authorities, commonName } = next;
    const read = readRules(next.rules);
    setTexts(next);
    onBody(
      typeof read === 'string'
        ? undefined
        : {
            operatorProbes,
            rate:
              perSecond === ''
                ? null
                : { perSecond: Number(perSecond), burst: Number(burst === '' ? perSecond : burst) },
            clientCertificate: authorities === '' && commonName === '' ? null : { authorities, commonName },
            rules: read,
          },
    );
  };
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Requests per second"
          optional
          inputMode="numeric"
          pattern="[0-9]*"
          value={texts.perSecond}
          onValue={(perSecond) => change({ perSecond })}
          fault={fault('rate.perSecond')}
          help="Requests above the rate get status 429. Default quota of AWS KMS: 1800 per second for each key store."
        />
        <TextField
          label="Burst"
          optional
          inputMode="numeric"
          pattern="[0-9]*"
          value={texts.burst}
          onValue={(burst) => change({ burst })}
          fault={fault('rate.burst')}
          help="Requests that are accepted at once after a pause. Default: the rate of one second."
        />
      </div>
      <TextField
        label="Common name of the client certificate"
        optional
        mono
        value={texts.commonName}
        onValue={(commonName) => change({ commonName })}
        fault={fault('clientCertificate.commonName')}
        placeholder="cks.kms.eu-central-1.amazonaws.com"
        help="Mutual TLS. Leave this and the bundle empty to require no certificate."
      />
      <AreaField
        label="Client certificate authorities"
        optional
        value={texts.authorities}
        onValue={(authorities) => change({ authorities })}
        fault={fault('clientCertificate.authorities')}
        placeholder="-----BEGIN CERTIFICATE-----"
        help="PEM: the authority that issues the client certificates, with its chain up to the root."
      />
      <AreaField
        label="Rules"
        optional
        rows={9}
        value={texts.rules}
        onValue={(rules) => change({ rules })}
        fault={typeof rules === 'string' ? rules : fault('rules')}
        placeholder={ruleExample}
        help="A JSON list. The first rule that matches a request decides. Without a match, the request is allowed. * matches any characters, ? matches one."
      />
      <CheckField
        label="Answer unsigned health probes"
        help="For load balancers and operators. The answer reveals only the number of nodes."
        checked={texts.operatorProbes}
        onValue={(operatorProbes) => change({ operatorProbes })}
      />
    </>
  );
};

export const settingNames = {
  operatorProbes: 'Unsigned health probes',
  rate: 'Rate',
  clientCertificate: 'Client certificate',
  rules: 'Rules',
} as const satisfies Record<keyof EndpointSettings, string>;

const SettingsDialog = ({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) => (
  <EditDialog<Endpoint, EndpointSettings>
    title={`Access settings of “${endpoint.name}”`}
    wide
    path={endpointPath(endpoint.id)}
    bodyOf={({ settings }) => settings}
    callOf={(body) => ({ method: 'PUT', path: `${endpointPath(endpoint.id)}/settings`, body })}
    names={settingNames}
    submitLabel="Save settings"
    onClose={onClose}
    renews={[endpointsPath]}
    done="The settings apply from the next request."
  >
    {(fields) => <SettingsFields {...fields} />}
  </EditDialog>
);

export const EndpointSettingsPanel = ({ endpoint }: { endpoint: Endpoint }) => {
  const [open, setOpen] = useState(false);
  const { rate, clientCertificate, rules, operatorProbes } = endpoint.settings;
  return (
    <Panel
      title="Access settings"
      description="In addition to SigV4, which every request needs."
      actions={
        endpoint.state !== 'deleted' && (
          <Button needs="endpoints:manage" onClick={() => setOpen(true)} opens>
            Change settings
          </Button>
        )
      }
    >
      <Facts
        items={[
          [
            'Rate',
            rate === null
              ? 'No limit'
              : `${rate.perSecond.toLocaleString('en-GB')} requests per second, ${rate.burst.toLocaleString('en-GB')} at once`,
          ],
          [
            'Client certificate',
            clientCertificate === null ? 'Not required' : <code key="name">{clientCertificate.commonName}</code>,
          ],
          [
            'Rules',
            rules.length === 0 ? 'None. Every signed request is allowed.' : <RuleList key="rules" rules={rules} />,
          ],
          ['Unsigned health probes', operatorProbes ? 'Allowed for operators' : 'Refused'],
        ]}
      />
      {open && <SettingsDialog endpoint={endpoint} onClose={() => setOpen(false)} />}
    </Panel>
  );
};
