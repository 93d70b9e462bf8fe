// Decides about `dke login` in this browser: the person enters the code that their command shows,
// sees which host asks for which rights, and approves or refuses it. A code in the address stays
// behind the `#`, and is removed from it at once.

import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { send } from '../api/client.ts';
import type { DeviceSignInRequest, Session } from '../api/types.ts';
import { sessionQuery } from '../session/current-session.ts';
import { CheckField, SelectField, TextField } from '../ui/fields/field.tsx';
import { CallForm } from '../ui/forms/form.tsx';
import { Button } from '../ui/page/button.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Facts, Page, Panel } from '../ui/page/page.tsx';
import { EmptyState, ProblemView } from '../ui/page/problem-view.tsx';
import { Time } from '../ui/page/time.tsx';
import { titled } from './role-names.ts';

type Grant = Session['grants'][number];
const path = '/api/device-sign-in';
const nameOf = ({ role, scope, tenantId }: Grant): string =>
  `${titled(role)}${scope === null ? '' : ` of ${scope.kind} ${scope.id}`}${tenantId === null ? '' : ` in tenant ${tenantId}`}`;
const hours = [1, 4, 8, 12, 24];

const EnterCode = ({
  given,
  onFound,
}: {
  given: string;
  onFound: (userCode: string, request: DeviceSignInRequest) => void;
}) => {
  const [userCode, setUserCode] = useState(given);
  return (
    <CallForm<DeviceSignInRequest>
      call={{ method: 'POST', path: `${path}/find`, body: { userCode } }}
      typedAgain
      submitLabel="Check code"
      submitDisabled={userCode.trim() === ''}
      onDone={(request) => onFound(userCode, request)}
    >
      {(fault) => (
        <TextField
          label="Code"
          help="The command dke login shows it, for example WDJB-MJHT."
          mono
          autoFocus
          autoComplete="off"
          autoCapitalize="characters"
          value={userCode}
          onValue={setUserCode}
          fault={fault('userCode')}
        />
      )}
    </CallForm>
  );
};

const Decide = ({
  userCode,
  request,
  session,
  onDecided,
}: {
  userCode: string;
  request: DeviceSignInRequest;
  session: Session;
  onDecided: (decision: 'approved' | 'refused') => void;
}) => {
  const asked = (grant: Grant): boolean => request.roles?.includes(grant.role) ?? true;
  const [chosen, setChosen] = useState<readonly string[]>(session.grants.filter(asked).map(nameOf));
  const [valid, setValid] = useState(String(request.hours));
  const grants = session.grants.filter((grant) => chosen.includes(nameOf(grant)));
  const refusal = useMutation({
    mutationFn: () => send<DeviceSignInRequest>({ method: 'POST', path: `${path}/refuse`, body: { userCode } }),
    onSuccess: () => onDecided('refused'),
  });
  const choices = [...new Set([...hours, request.hours])].sort((one, other) => one - other);
  return (
    <div className="space-y-4">
      <Notice tone="danger" title="Approve only a command that you started yourself">
        Did another person send you this code or a link to this page? Then refuse it: the command would act in your
        name, with your rights.
      </Notice>
      <Facts
        items={[
          ['Code', <code key="code">{userCode.toUpperCase()}</code>],
          ['Command', <code key="command">dke login</code>],
          ['Host, as the command says', <code key="host">{request.host}</code>],
          ['Asked from address', <code key="peer">{request.peer ?? 'unknown'}</code>],
          ['Asked', <Time key="asked" value={request.requestedAt} />],
          ['Code expires', <Time key="expires" value={request.expiresAt} />],
        ]}
      />
      <CallForm<DeviceSignInRequest>
        call={{ method: 'POST', path: `${path}/approve`, body: { userCode, hours: Number(valid), grants } }}
        typedAgain
        submitLabel="Approve command"
        submitDisabled={grants.length === 0}
        onDone={() => onDecided('approved')}
      >
        {() => (
          <>
            <fieldset className="space-y-2">
              <legend className="mb-1 font-medium">Roles of the command</legend>
              {session.grants.map((grant) => (
                <CheckField
                  key={nameOf(grant)}
                  label={nameOf(grant)}
                  checked={chosen.includes(nameOf(grant))}
                  onValue={(checked) =>
                    setChosen(checked ? [...chosen, nameOf(grant)] : chosen.filter((name) => name !== nameOf(grant)))
                  }
                />
              ))}
            </fieldset>
            <SelectField
              label="Valid for"
              choices={choices.map((each) => ({ value: String(each), text: each === 1 ? '1 hour' : `${each} hours` }))}
              value={valid}
              onValue={setValid}
            />
          </>
        )}
      </CallForm>
      {refusal.error !== null && <ProblemView error={refusal.error} compact />}
      <Button tone="danger" busy={refusal.isPending} onClick={() => refusal.mutate()}>
        Refuse command
      </Button>
    </div>
  );
};

export const DevicePage = () => {
  const session = useQuery(sessionQuery).data;
  const [given] = useState(() => location.hash.slice(1, 33));
  const [found, setFound] = useState<{ userCode: string; request: DeviceSignInRequest } | null>(null);
  const [decision, setDecision] = useState<'approved' | 'refused' | null>(null);
  useEffect(() => {
    // Removed from the address and the history.
    history.replaceState(history.state, '', location.pathname);
  }, []);
  return (
    <Page title="Sign in a command" description="A command that runs dke login waits for your decision.">
      <Panel>
        {session?.kind === 'token' && (
          <EmptyState title="Sign in as a user">A command can act for a user only, not for a token.</EmptyState>
        )}
        {session?.kind === 'user' &&
          (decision !== null ? (
            <Notice
              tone={decision === 'approved' ? 'info' : 'warn'}
              title={decision === 'approved' ? 'Command approved' : 'Command refused'}
            >
              {decision === 'approved'
                ? 'It signs in within a few seconds. You can close this page. Stay signed in here until then.'
                : 'It gets no rights. If you did not start it, tell your security team: the audit log has the request.'}
            </Notice>
          ) : found === null ? (
            <EnterCode given={given} onFound={(userCode, request) => setFound({ userCode, request })} />
          ) : (
            <Decide {...found} session={session} onDecided={setDecision} />
          ))}
      </Panel>
    </Page>
  );
};
