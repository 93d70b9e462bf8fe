// The state of the service that stops work until an operator decides: its clock and its quarantine.

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../api/client.ts';
import type { ClockState, Quarantine } from '../api/types.ts';
import { TextField } from '../ui/fields/field.tsx';
import { FormDialog } from '../ui/forms/form.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { Badge } from '../ui/page/state-badge.tsx';
import { Time } from '../ui/page/time.tsx';
import { DataTable } from '../ui/table/data-table.tsx';
import { ServiceTabs } from './service-tabs.tsx';

const clockPath = '/api/clock';
const quarantinePath = '/api/quarantine';

const lengthOf = (seconds: number): string => {
  const size = Math.abs(seconds);
  if (size < 120) return `${size} seconds`;
  return size < 7200 ? `${Math.round(size / 60)} minutes` : `${Math.round(size / 3600)} hours`;
};

const ConfirmClock = ({ onClose }: { onClose: () => void }) => {
  const [time, setTime] = useState('');
  return (
    <FormDialog
      title="Confirm the time?"
      call={{ method: 'POST', path: `${clockPath}/confirm`, body: { time: time.trim() } }}
      submitLabel="Confirm time"
      submitTone="danger"
      submitDisabled={Number.isNaN(Date.parse(time.trim()))}
      renews={[clockPath, '/api/status']}
      done="Time confirmed"
      onCancel={onClose}
    >
      {(fault) => (
        <>
          <p>Deadlines follow the clock again. Everything that is due by then is destroyed within the next minute.</p>
          <TextField
            label="Current time"
            help="From a clock that you trust, not the clock of this service: RFC 3339 with a zone, for example 2026-03-01T09:30:00Z."
            value={time}
            onValue={setTime}
            fault={fault('time')}
            mono
          />
        </>
      )}
    </FormDialog>
  );
};

const ClockPanel = () => {
  const [confirming, setConfirming] = useState(false);
  const query = useQuery({
    queryKey: [clockPath],
    queryFn: ({ signal }) => send<ClockState>({ method: 'GET', path: clockPath }, { signal }),
    refetchInterval: 15_000,
  });
  const jumped = query.data?.jumped === true;
  return (
    <Panel
      title="Clock"
      description="Deadlines decide what is purged, deleted and pruned."
      asOf={query.dataUpdatedAt}
      actions={
        jumped && (
          <Button needs="clock:confirm" tone="danger" opens onClick={() => setConfirming(true)}>
            Confirm time
          </Button>
        )
      }
    >
      <Async query={query}>
        {(clock) => (
          <div className="space-y-4">
            {clock.jumped && (
              <Notice tone="danger" title="The clock has jumped">
                Nothing is purged, deleted or pruned by a deadline until the time is confirmed. The clock was{' '}
                {lengthOf(clock.aheadSeconds ?? 0)} {(clock.aheadSeconds ?? 0) < 0 ? 'behind' : 'ahead'} of the elapsed
                time. Correct the clock of the host, or confirm the time. The service accepts the clocks on its own
                after they have matched for a day.
              </Notice>
            )}
            <Facts
              items={[
                [
                  'State',
                  <Badge key="state" tone={clock.jumped ? 'danger' : 'ok'} icon={clock.jumped ? 'warning' : 'active'}>
                    {clock.jumped ? 'Deadlines wait' : 'Deadlines follow the clock'}
                  </Badge>,
                ],
                ['Clock of this host', <Time key="clock" value={clock.clock} seconds />],
                ['Time of deadlines', <Time key="deadlines" value={clock.deadlines} seconds />],
                ...(clock.since === null ? [] : [['Since', <Time key="since" value={clock.since} seconds />] as const]),
                ...(clock.agreedSeconds === null ? [] : [['Clocks match for', lengthOf(clock.agreedSeconds)] as const]),
              ]}
            />
          </div>
        )}
      </Async>
      {confirming && <ConfirmClock onClose={() => setConfirming(false)} />}
    </Panel>
  );
};

const findings: Readonly<Record<NonNullable<Quarantine['finding']>, string>> = {
  older: 'Records of the audit log are missing up to the checkpoint next to the root key',
  incomplete: 'Confirmed records of the audit log are missing after the checkpoint',
  changed: 'Records of the audit log differ from those that were signed',
  'rows-changed': 'Rows with rules or roles were restored, removed or added in the database',
  'lost-changes': 'Confirmed changes are missing, as after a failover',
  restored: 'A backup of the service was restored',
  copied: 'The data directory was used on another host, and may still be in use there',
};

const ConfirmQuarantine = ({ onClose }: { onClose: () => void }) => {
  const [code, setCode] = useState('');
  return (
    <FormDialog
      title="Accept this database?"
      call={{ method: 'POST', path: `${quarantinePath}/confirm`, body: { code: code.trim() } }}
      secretBody
      submitLabel="Accept database"
      submitTone="danger"
      submitDisabled={code.trim() === ''}
      renews={[quarantinePath, '/api/status']}
      done="Quarantine ended"
      onCancel={onClose}
    >
      {(fault) => (
        <>
          <p>
            Everything that was disabled or revoked after this state is enabled and valid again. The service serves
            requests at once. The audit log records your name.
          </p>
          <TextField
            label="Code"
            help="The service printed it on its standard output when it started."
            value={code}
            onValue={setCode}
            fault={fault('code')}
            mono
          />
        </>
      )}
    </FormDialog>
  );
};

const QuarantinePanel = () => {
  const [confirming, setConfirming] = useState(false);
  const query = useQuery({
    queryKey: [quarantinePath],
    queryFn: ({ signal }) => send<Quarantine>({ method: 'GET', path: quarantinePath }, { signal }),
    refetchInterval: 15_000,
  });
  return (
    <Panel
      title="Quarantine"
      description="A database that is not the one of its last checkpoint serves no requests until an operator accepts it."
      asOf={query.dataUpdatedAt}
      actions={
        query.data?.quarantined === true && (
          <Button needs="quarantine:confirm" tone="danger" opens onClick={() => setConfirming(true)}>
            Accept database
          </Button>
        )
      }
    >
      <Async query={query}>
        {(state) => (
          <div className="space-y-4">
            {state.quarantined && (
              <Notice tone="danger" title="The service is in quarantine">
                {state.reason}
              </Notice>
            )}
            <Facts
              items={[
                [
                  'State',
                  <Badge
                    key="state"
                    tone={state.quarantined ? 'danger' : 'ok'}
                    icon={state.quarantined ? 'blocked' : 'active'}
                  >
                    {state.quarantined ? 'In quarantine' : 'Not in quarantine'}
                  </Badge>,
                ],
                ...(state.finding === null ? [] : [['Finding', findings[state.finding]] as const]),
                ...(state.since === null ? [] : [['Since', <Time key="since" value={state.since} seconds />] as const]),
                ...(state.size === null
                  ? []
                  : [['Records in the audit log', state.size.toLocaleString('en-GB')] as const]),
                ...(state.expected === null
                  ? []
                  : [['Records at the checkpoint', state.expected.toLocaleString('en-GB')] as const]),
                ...(state.missing === null
                  ? []
                  : [['Records that only sinks have', state.missing.count.toLocaleString('en-GB')] as const]),
              ]}
            />
            {state.differences.length > 0 && (
              <DataTable
                caption="What was compared with what"
                rows={state.differences}
                rowKey={({ what, foundIn }) => `${what} ${foundIn}`}
                columns={[
                  { key: 'what', header: 'What', names: true, cell: ({ what }) => what },
                  { key: 'found', header: 'Found', cell: ({ found, foundIn }) => `${found} (${foundIn})` },
                  {
                    key: 'expected',
                    header: 'Expected',
                    cell: ({ expected, expectedIn }) => `${expected} (${expectedIn})`,
                  },
                ]}
              />
            )}
          </div>
        )}
      </Async>
      {confirming && <ConfirmQuarantine onClose={() => setConfirming(false)} />}
    </Panel>
  );
};

export const ServicePage = () => (
  <Page title="Service state" description="What stops work until an operator decides.">
    <ServiceTabs />
    <ClockPanel />
    <QuarantinePanel />
  </Page>
);
