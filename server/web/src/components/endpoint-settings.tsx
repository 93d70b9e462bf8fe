// Who may call a key store endpoint, and how much: its settings, and the dialog that changes them.

import { useState } from 'react';
import type { Endpoint, EndpointSettings } from '../api/types.ts';
import { RuleList, readRules, ruleExample } from './authorization-rules.tsx';
import { Button } from './button.tsx';
import { endpointPath, endpointsPath } from './endpoints.ts';
import { AreaField, CheckField, TextField } from './field.tsx';
import { FormDialog } from './form.tsx';
import { Facts, Panel } from './page.tsx';

const SettingsDialog = ({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) => {
  const { settings } = endpoint;
  const [operatorProbes, setOperatorProbes] = useState(settings.operatorProbes);
  const [perSecond, setPerSecond] = useState(settings.rate === null ? '' : String(settings.rate.perSecond));
  const [burst, setBurst] = useState(settings.rate === null ? '' : String(settings.rate.burst));
  const [authorities, setAuthorities] = useState(settings.clientCertificate?.authorities ?? '');
  const [commonName, setCommonName] = useState(settings.clientCertificate?.commonName ?? '');
  const [rulesText, setRulesText] = useState(
    settings.rules.length === 0 ? '' : JSON.stringify(settings.rules, null, 2),
  );
  const rules = readRules(rulesText);
  const body: EndpointSettings = {
    operatorProbes,
    rate: perSecond === '' ? null : { perSecond: Number(perSecond), burst: Number(burst === '' ? perSecond : burst) },
    clientCertificate: authorities === '' && commonName === '' ? null : { authorities, commonName },
    rules: typeof rules === 'string' ? settings.rules : rules,
  };

  return (
    <FormDialog<Endpoint>
      title={`Who may call “${endpoint.name}”`}
      wide
      call={{ method: 'PUT', path: `${endpointPath(endpoint.id)}/settings`, body }}
      submitLabel="Save"
      submitDisabled={typeof rules === 'string'}
      onCancel={onClose}
      renews={[endpointsPath]}
      done="The settings apply from the next request."
    >
      {(fault) => (
        <>
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField
              label="Requests per second"
              optional
              inputMode="numeric"
              pattern="[0-9]*"
              value={perSecond}
              onValue={setPerSecond}
              fault={fault('rate.perSecond')}
              help="Further requests get status 429. AWS KMS sends at most 1800 per second for one key store, unless its quota was raised."
            />
            <TextField
              label="Burst"
              optional
              inputMode="numeric"
              pattern="[0-9]*"
              value={burst}
              onValue={setBurst}
              fault={fault('rate.burst')}
              help="Requests at once after a pause. If empty: one second of the rate."
            />
          </div>
          <TextField
            label="Common name of the client certificate"
            optional
            mono
            value={commonName}
            onValue={setCommonName}
            fault={fault('clientCertificate.commonName')}
            placeholder="cks.kms.eu-central-1.amazonaws.com"
            help="Mutual TLS. Leave this and the bundle empty to require no certificate."
          />
          <AreaField
            label="Authorities of client certificates"
            optional
            value={authorities}
            onValue={setAuthorities}
            fault={fault('clientCertificate.authorities')}
            placeholder="-----BEGIN CERTIFICATE-----"
            help="PEM: the authority that issues the client certificates, and its chain up to the root."
          />
          <AreaField
            label="Rules"
            optional
            rows={9}
            value={rulesText}
            onValue={setRulesText}
            fault={typeof rules === 'string' ? rules : fault('rules')}
            placeholder={ruleExample}
            help="A JSON list. The first rule that matches a request decides. Without a match, the request is allowed. * matches any characters, ? matches one."
          />
          <CheckField
            label="Answer unsigned health probes"
            help="For load balancers and operators. The answer reveals only the number of nodes."
            checked={operatorProbes}
            onValue={setOperatorProbes}
          />
        </>
      )}
    </FormDialog>
  );
};

export const EndpointSettingsPanel = ({ endpoint }: { endpoint: Endpoint }) => {
  const [open, setOpen] = useState(false);
  const { rate, clientCertificate, rules, operatorProbes } = endpoint.settings;
  return (
    <Panel
      title="Who may call"
      description="In addition to SigV4, which every request needs."
      actions={endpoint.state !== 'deleted' && <Button onClick={() => setOpen(true)}>Change…</Button>}
    >
      <Facts
        items={[
          [
            'Rate',
            rate === null
              ? 'No limit'
              : `${rate.perSecond.toLocaleString()} requests per second, ${rate.burst.toLocaleString()} at once`,
          ],
          [
            'Client certificate',
            clientCertificate === null ? 'Not required' : <code key="name">{clientCertificate.commonName}</code>,
          ],
          [
            'Rules',
            rules.length === 0 ? 'None: every signed request is allowed' : <RuleList key="rules" rules={rules} />,
          ],
          ['Unsigned health probes', operatorProbes ? 'Allowed for operators' : 'Refused'],
        ]}
      />
      {open && <SettingsDialog endpoint={endpoint} onClose={() => setOpen(false)} />}
    </Panel>
  );
};
