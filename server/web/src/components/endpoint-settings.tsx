// Who may call a key store endpoint, and how much: its settings, and the dialog that changes them.

import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Endpoint, EndpointSettings } from '../api/types.ts';
import { useAnnounce } from './announce.tsx';
import { RuleList, readRules, ruleExample } from './authorization-rules.tsx';
import { Button } from './button.tsx';
import { endpointPath, endpointsPath } from './endpoints.ts';
import { AreaField, CheckField, TextField } from './field.tsx';
import { FormDialog } from './form.tsx';
import { Facts, Panel } from './page.tsx';

const SettingsDialog = ({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) => {
  const { settings } = endpoint;
  const client = useQueryClient();
  const announce = useAnnounce();
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
      onDone={async () => {
        await client.invalidateQueries({ queryKey: [endpointsPath] });
        announce('The settings hold from the next request on.');
        onClose();
      }}
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
              help="More are answered 429. AWS KMS sends at most 1800 a second for one key store unless its quota was raised."
            />
            <TextField
              label="Burst"
              optional
              inputMode="numeric"
              pattern="[0-9]*"
              value={burst}
              onValue={setBurst}
              fault={fault('rate.burst')}
              help="So many at once after a pause. One second of the rate when empty."
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
            help="Mutual TLS. Leave this and the bundle empty to ask for no certificate."
          />
          <AreaField
            label="Authorities of client certificates"
            optional
            value={authorities}
            onValue={setAuthorities}
            fault={fault('clientCertificate.authorities')}
            placeholder="-----BEGIN CERTIFICATE-----"
            help="PEM: the authority that issues the client certificates, and those above it up to the root."
          />
          <AreaField
            label="Rules"
            optional
            rows={9}
            value={rulesText}
            onValue={setRulesText}
            fault={typeof rules === 'string' ? rules : fault('rules')}
            placeholder={ruleExample}
            help="A list in JSON. The first rule that fits a request decides; what none fits is allowed. * stands for any characters, ? for one."
          />
          <CheckField
            label="Answer health to unsigned probes"
            help="For load balancers and operators. They learn the number of nodes, nothing else."
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
              : `${rate.perSecond.toLocaleString()} requests a second, ${rate.burst.toLocaleString()} at once`,
          ],
          [
            'Client certificate',
            clientCertificate === null ? 'Not asked for' : <code key="name">{clientCertificate.commonName}</code>,
          ],
          ['Rules', rules.length === 0 ? 'None: what is signed is allowed' : <RuleList key="rules" rules={rules} />],
          ['Unsigned health probes', operatorProbes ? 'Allowed for operators' : 'Refused'],
        ]}
      />
      {open && <SettingsDialog endpoint={endpoint} onClose={() => setOpen(false)} />}
    </Panel>
  );
};
