// The access settings of a key store endpoint (rate, client certificate, rules), and the dialog that changes them.

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
      title={`Access settings of “${endpoint.name}”`}
      wide
      call={{ method: 'PUT', path: `${endpointPath(endpoint.id)}/settings`, body }}
      submitLabel="Save settings"
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
              help="Requests above the rate get status 429. Default quota of AWS KMS: 1800 per second for each key store."
            />
            <TextField
              label="Burst"
              optional
              inputMode="numeric"
              pattern="[0-9]*"
              value={burst}
              onValue={setBurst}
              fault={fault('rate.burst')}
              help="Requests that are accepted at once after a pause. Default: the rate of one second."
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
            label="Client certificate authorities"
            optional
            value={authorities}
            onValue={setAuthorities}
            fault={fault('clientCertificate.authorities')}
            placeholder="-----BEGIN CERTIFICATE-----"
            help="PEM: the authority that issues the client certificates, with its chain up to the root."
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
      title="Access settings"
      description="In addition to SigV4, which every request needs."
      actions={endpoint.state !== 'deleted' && <Button onClick={() => setOpen(true)}>Change settings…</Button>}
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
            rules.length === 0 ? 'None. Every signed request is allowed.' : <RuleList key="rules" rules={rules} />,
          ],
          ['Unsigned health probes', operatorProbes ? 'Allowed for operators' : 'Refused'],
        ]}
      />
      {open && <SettingsDialog endpoint={endpoint} onClose={() => setOpen(false)} />}
    </Panel>
  );
};
