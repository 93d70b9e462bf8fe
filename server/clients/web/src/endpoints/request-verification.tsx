// Compares the request log with the hashes of its minutes in the audit log.

import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { type ApiCall, send } from '../api/client.ts';
import type { RequestLogVerification } from '../api/types.ts';
import { SelectField } from '../ui/fields/field.tsx';
import { ApiCallView } from '../ui/forms/api-call.tsx';
import { Button } from '../ui/page/button.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { ProblemView } from '../ui/page/problem-view.tsx';
import { RequestTabs } from './request-tabs.tsx';

const spans = [
  { value: '1', text: 'The last hour' },
  { value: '24', text: 'The last 24 hours' },
  { value: '168', text: 'The last 7 days' },
  { value: '720', text: 'The last 30 days' },
] as const;

const Verdict = ({ found }: { found: RequestLogVerification }) => (
  <div className="space-y-4">
    {found.valid ? (
      <Notice tone="info" title="The request log matches its hashes">
        {found.requests.toLocaleString('en-GB')} records of {found.minutes.toLocaleString('en-GB')} minutes are as they
        were hashed into the audit log.
      </Notice>
    ) : (
      <Notice tone="danger" title="The request log does not match its hashes">
        <ul className="list-disc pl-5">
          {found.findings.map((finding) => (
            <li key={finding} className="wrap-anywhere">
              {finding}
            </li>
          ))}
        </ul>
      </Notice>
    )}
    <Facts
      items={[
        ['Records checked', found.requests.toLocaleString('en-GB')],
        ['Minutes', found.minutes.toLocaleString('en-GB')],
        ['Not yet hashed', found.open.toLocaleString('en-GB')],
        ['Arrived after their minute', found.late.toLocaleString('en-GB')],
        ['Removed by retention', found.pruned.toLocaleString('en-GB')],
        ['Signed requests not recorded', found.dropped.toLocaleString('en-GB')],
        ['Other requests not recorded', found.droppedUnsigned.toLocaleString('en-GB')],
      ]}
    />
  </div>
);

export const RequestVerificationPage = () => {
  const [hours, setHours] = useState<string>('1');
  // The moment of the page, in whole minutes: the call that is shown is the call that is sent.
  const [openedAt] = useState(() => Math.floor(Date.now() / 60_000) * 60_000);
  const call: ApiCall = {
    method: 'GET',
    path: '/api/requests/verification',
    query: {
      from: new Date(openedAt - Number(hours) * 3_600_000).toISOString(),
      to: new Date(openedAt).toISOString(),
    },
  };
  const verify = useMutation({ mutationFn: () => send<RequestLogVerification>(call) });
  return (
    <Page
      title="Verification of the request log"
      description="Finds requests that were changed, removed or added after their minute was hashed into the audit log."
    >
      <RequestTabs />
      <Panel title="Check">
        <div className="space-y-4">
          <SelectField label="Time range" value={hours} onValue={setHours} choices={spans} />
          <div role="status">{verify.data !== undefined && <Verdict found={verify.data} />}</div>
          {verify.error !== null && <ProblemView error={verify.error} compact />}
          <Button tone="primary" icon="check" busy={verify.isPending} onClick={() => verify.mutate()}>
            Verify request log
          </Button>
          <ApiCallView call={call} />
        </div>
      </Panel>
    </Page>
  );
};
