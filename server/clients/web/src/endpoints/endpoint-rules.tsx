// The rules of an endpoint, tested before they apply: a request that you enter, and those in the
// request log, against the rules as they are or as they are being edited.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { type ApiCall, send } from '../api/client.ts';
import { endpointPath, endpointsPath } from '../api/paths.ts';
import type {
  AuthorizationRule,
  Endpoint,
  EndpointRequest,
  EndpointSettings,
  RuleDecision,
  SimulatedRequest,
} from '../api/types.ts';
import { AreaField, TextField } from '../ui/fields/field.tsx';
import { ApiCallView } from '../ui/forms/api-call.tsx';
import { EditDialog, readTagged, type Tagged } from '../ui/forms/edit-dialog.tsx';
import { Async } from '../ui/page/async.tsx';
import { Button } from '../ui/page/button.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState, ProblemView } from '../ui/page/problem-view.tsx';
import { StateBadge } from '../ui/page/state-badge.tsx';
import { type Column, DataTable } from '../ui/table/data-table.tsx';
import type { ListPage } from '../ui/table/list-view.tsx';
import { DecisionBadge, RuleList, readRules, ruleExample, subjectNames } from './authorization-rules.tsx';
import { settingNames } from './endpoint-settings.tsx';
import { EndpointTabs } from './endpoint-tabs.tsx';

const route = getRouteApi('/endpoints/$id/rules');

interface Decisions {
  readonly items: readonly RuleDecision[];
}

const fields = [
  ['kmsOperation', 'Operation', 'Decrypt'],
  ['awsPrincipalArn', 'Principal', 'arn:aws:iam::111122223333:role/orders-service'],
  ['kmsKeyArn', 'KMS key', 'arn:aws:kms:eu-central-1:111122223333:key/…'],
  ['kmsViaService', 'Via service', 's3.eu-central-1.amazonaws.com'],
  ['awsSourceVpc', 'VPC', 'vpc-…'],
  ['awsSourceVpce', 'VPC endpoint', 'vpce-…'],
] as const satisfies readonly (readonly [keyof SimulatedRequest, string, string])[];

/** The fields of a request that are filled in. */
const filledIn = (request: SimulatedRequest): SimulatedRequest => {
  const told = Object.entries(request).flatMap(([name, value = '']) =>
    value.trim() === '' ? [] : [[name, value.trim()] as const],
  );
  return { kmsOperation: '', ...Object.fromEntries(told) };
};

/** Requests of the log that rules can distinguish, with the number of each. */
interface Recorded {
  readonly request: SimulatedRequest;
  readonly count: number;
}
const most = 100;
/** The service's own requests are not evidence about the cloud. */
const ownOperation = 'DkeDiagnostics';
const gather = (items: readonly EndpointRequest[]): readonly Recorded[] => {
  const found = new Map<string, { request: SimulatedRequest; count: number }>();
  for (const { kmsOperation, principal, kmsKeyArn, awsSourceVpc, awsSourceVpce, kmsViaService } of items) {
    // No rule applies to health checks and to requests that failed before they named a principal.
    if (kmsOperation === null || kmsOperation === ownOperation || principal === null) continue;
    const request: SimulatedRequest = {
      kmsOperation,
      awsPrincipalArn: principal,
      ...(kmsKeyArn === null ? {} : { kmsKeyArn }),
      ...(awsSourceVpc === null ? {} : { awsSourceVpc }),
      ...(awsSourceVpce === null ? {} : { awsSourceVpce }),
      ...(kmsViaService === null ? {} : { kmsViaService }),
    };
    const key = JSON.stringify(request);
    const known = found.get(key);
    if (known === undefined) found.set(key, { request, count: 1 });
    else known.count += 1;
  }
  return [...found.values()].toSorted((one, other) => other.count - one.count).slice(0, most);
};

const Why = ({ decision }: { decision: RuleDecision }) => (
  <div className="space-y-2">
    <p>
      {decision.rule === null ? (
        'No rule matches, so the request is allowed.'
      ) : (
        <>
          The rule <span className="font-semibold wrap-anywhere">{decision.rule}</span> decides: it is the first match.
        </>
      )}
    </p>
    {decision.passed.length > 0 && (
      <ol className="list-decimal space-y-1 pl-5 text-muted">
        {decision.passed.map(({ rule, subject, value }) => (
          <li key={rule}>
            <span className="text-ink wrap-anywhere">{rule}</span> does not match: the {subjectNames[subject]} is{' '}
            {value === null ? 'unknown' : <code className="wrap-anywhere">{value}</code>}
          </li>
        ))}
      </ol>
    )}
  </div>
);

const differs = ({ effect, current }: RuleDecision): boolean => effect !== current.effect;

const Answer = ({ decision, edited }: { decision: RuleDecision; edited: boolean }) => (
  <div
    role="status"
    className={`space-y-2 rounded-lg border p-4 ${decision.effect === 'deny' ? 'border-danger/35 bg-danger-soft' : 'border-ok/30 bg-ok-soft'}`}
  >
    <p className="flex flex-wrap items-center gap-2 text-base font-semibold">
      <DecisionBadge effect={decision.effect} />
      {decision.effect === 'deny' ? 'It would be refused: AccessDeniedException' : 'It would be allowed'}
    </p>
    <Why decision={decision} />
    {edited && (
      <p className="text-muted">
        {differs(decision)
          ? `The active rules ${decision.current.effect === 'deny' ? 'refuse' : 'allow'} it${decision.current.rule === null ? '' : `, by ${decision.current.rule}`}.`
          : 'The active rules decide the same.'}
      </p>
    )}
  </div>
);

interface DecidedRequest extends Recorded {
  /** Undefined until the service has answered. */
  readonly decision: RuleDecision | undefined;
}

/** The requests of the log, and what `rules` decide; undefined: the active rules. */
const useDecisions = (id: string, rules: readonly AuthorizationRule[] | undefined) => {
  const log = useQuery({
    queryKey: [endpointsPath, id, 'recorded'],
    queryFn: ({ signal }) =>
      send<ListPage<EndpointRequest>>(
        { method: 'GET', path: `${endpointPath(id)}/requests`, query: { signed: true, limit: 1000 } },
        { signal },
      ).then(({ items }) => gather(items)),
    staleTime: 60_000,
  });
  const recorded = log.data ?? [];
  const decided = useQuery({
    queryKey: [endpointsPath, id, 'recorded', rules ?? 'active rules', recorded],
    queryFn: ({ signal }) =>
      send<Decisions>(
        {
          method: 'POST',
          path: `${endpointPath(id)}/rules/simulate`,
          body: {
            ...(rules === undefined ? {} : { rules }),
            requests: recorded.map(({ request }) => request),
          },
        },
        { signal },
      ),
    enabled: recorded.length > 0,
    placeholderData: (before) => before,
    retry: false,
    gcTime: 0,
  });
  const rows: readonly DecidedRequest[] = recorded.map((each, index) => ({
    ...each,
    decision: decided.data?.items[index],
  }));
  return { log, decided, rows };
};

const DecisionCell = ({ decision }: Pick<DecidedRequest, 'decision'>) =>
  decision === undefined ? (
    '–'
  ) : (
    <span className="inline-flex flex-wrap items-center gap-x-2 gap-y-1">
      <DecisionBadge effect={decision.effect} />
      <span className="wrap-anywhere text-muted">{decision.rule ?? 'no rule matches'}</span>
      {differs(decision) && (
        <span className="text-xs font-medium">now {decision.current.effect === 'deny' ? 'refused' : 'allowed'}</span>
      )}
    </span>
  );

const recordedColumns: readonly Column<DecidedRequest>[] = [
  { key: 'operation', header: 'Operation', names: true, nowrap: true, cell: ({ request }) => request.kmsOperation },
  {
    key: 'principal',
    header: 'Principal',
    cell: ({ request }) => <span className="wrap-anywhere">{request.awsPrincipalArn ?? 'unknown'}</span>,
  },
  {
    key: 'count',
    header: 'Requests',
    cell: ({ count }) => <span className="tabular-nums">{count.toLocaleString('en-GB')}</span>,
  },
  { key: 'decision', header: 'Decision', cell: ({ decision }) => <DecisionCell decision={decision} /> },
];

const DifferenceNotice = ({ rows }: { rows: readonly DecidedRequest[] }) => {
  const changed = rows.filter(({ decision }) => decision !== undefined && differs(decision));
  if (changed.length === 0) return <Notice tone="info" title="No recorded request would be decided differently" />;
  const count = changed.reduce((sum, each) => sum + each.count, 0);
  return (
    <Notice tone="warn" title={`${count.toLocaleString('en-GB')} recorded requests would be decided differently`}>
      They are marked in the list.
    </Notice>
  );
};

const RecordedRequests = ({ id, rules }: { id: string; rules: readonly AuthorizationRule[] | undefined }) => {
  const { log, decided, rows } = useDecisions(id, rules);
  return (
    <Panel
      title="Recorded requests"
      description="The last thousand requests with a valid signature in the log, and how the rules decide each."
      flush
    >
      <Async query={log} lines={3}>
        {(found) =>
          found.length === 0 ? (
            <EmptyState title="No recorded requests yet">
              After the cloud key service has called this endpoint, you can test rules on its requests here.
            </EmptyState>
          ) : (
            <>
              {decided.error !== null && (
                <div className="p-4">
                  <ProblemView error={decided.error} compact />
                </div>
              )}
              {rules !== undefined && decided.data !== undefined && (
                <div className="p-4 pb-0">
                  <DifferenceNotice rows={rows} />
                </div>
              )}
              <DataTable
                caption="Recorded requests and the decisions of the rules"
                rows={rows}
                rowKey={({ request }) => JSON.stringify(request)}
                columns={recordedColumns}
                detail={({ decision }) => (decision === undefined ? '–' : <Why decision={decision} />)}
              />
            </>
          )
        }
      </Async>
    </Panel>
  );
};

interface Draft {
  readonly text: string;
  /** The rules in the text, or the fault in it. */
  readonly rules: readonly AuthorizationRule[] | string;
  /** The endpoint when the draft began. */
  readonly base: Tagged<Endpoint>;
}

const DraftEditor = ({ draft: { text, rules }, onText }: { draft: Draft; onText: (text: string) => void }) => (
  <div className="grid gap-4 lg:grid-cols-2">
    <AreaField
      label="Draft"
      optional
      rows={12}
      value={text}
      onValue={onText}
      placeholder={ruleExample}
      fault={typeof rules === 'string' ? rules : undefined}
      help="A JSON list, not applied yet. * matches any characters, ? matches one."
    />
    <div>
      <p className="mb-2 font-medium">In words</p>
      {typeof rules === 'string' ? (
        <p className="text-muted">–</p>
      ) : rules.length > 0 ? (
        <RuleList rules={rules} />
      ) : (
        <p className="text-muted">None. Every signed request is allowed.</p>
      )}
    </div>
  </div>
);

const ApplyDialog = ({
  base,
  rules,
  onClose,
}: {
  base: Tagged<Endpoint>;
  rules: readonly AuthorizationRule[];
  /** `ended`: the draft is no longer needed. */
  onClose: (ended: boolean) => void;
}) => {
  const client = useQueryClient();
  const { id, name } = base.data;
  return (
    <EditDialog<Endpoint, EndpointSettings>
      title={`Apply these rules to “${name}”?`}
      path={endpointPath(id)}
      read={base}
      bodyOf={({ settings }) => settings}
      begin={(settings) => ({ ...settings, rules })}
      callOf={(body) => ({ method: 'PUT', path: `${endpointPath(id)}/settings`, body })}
      names={settingNames}
      submitLabel="Apply rules"
      submitTone="danger"
      onClose={() => onClose(false)}
      onTake={() => {
        void client.invalidateQueries({ queryKey: [endpointsPath] });
        onClose(true);
      }}
      renews={[endpointsPath]}
      done="The rules apply from the next request"
      onDone={() => onClose(true)}
    >
      {() => (
        <div className="space-y-3">
          <p>They replace the active rules from the next request.</p>
          {rules.length === 0 ? <p>Without rules, every signed request is allowed.</p> : <RuleList rules={rules} />}
        </div>
      )}
    </EditDialog>
  );
};

const RulesPanel = ({
  endpoint,
  draft,
  onText,
  onDraft,
}: {
  endpoint: Endpoint;
  draft: Draft | null;
  onText: (text: string) => void;
  /** A draft begins; null ends it. */
  onDraft: (base: Tagged<Endpoint> | null) => void;
}) => {
  const [applying, setApplying] = useState(false);
  const begin = useMutation({
    mutationFn: () => readTagged<Endpoint>(endpointPath(endpoint.id)),
    onSuccess: onDraft,
  });
  const { rules: active } = endpoint.settings;
  const edited = draft === null || typeof draft.rules === 'string' ? undefined : draft.rules;
  return (
    <Panel
      title={draft === null ? 'Active rules' : 'Edited rules'}
      description="Rules are checked in order. The first match decides. Without a match, the request is allowed."
      actions={
        draft === null ? (
          <Button needs="endpoints:manage" busy={begin.isPending} onClick={() => begin.mutate()} opens>
            Edit a draft
          </Button>
        ) : (
          <>
            <Button onClick={() => onDraft(null)}>Discard draft</Button>
            <Button
              tone="primary"
              disabled={edited === undefined || endpoint.state === 'deleted'}
              onClick={() => setApplying(true)}
              opens
            >
              Apply rules
            </Button>
          </>
        )
      }
    >
      {begin.error !== null && <ProblemView error={begin.error} compact />}
      {draft !== null ? (
        <DraftEditor draft={draft} onText={onText} />
      ) : active.length === 0 ? (
        <p>None. Every signed request is allowed.</p>
      ) : (
        <RuleList rules={active} />
      )}
      {applying && draft !== null && edited !== undefined && (
        <ApplyDialog
          base={draft.base}
          rules={edited}
          onClose={(ended) => {
            setApplying(false);
            if (ended) onDraft(null);
          }}
        />
      )}
    </Panel>
  );
};

const TryRequest = ({ id, draft }: { id: string; draft: Draft | null }) => {
  const [request, setRequest] = useState<SimulatedRequest>({ kmsOperation: 'Decrypt' });
  const isReadable = typeof draft?.rules !== 'string';
  const call: ApiCall = {
    method: 'POST',
    path: `${endpointPath(id)}/rules/simulate`,
    body: { ...(draft !== null && isReadable ? { rules: draft.rules } : {}), requests: [filledIn(request)] },
  };
  const attempt = useMutation({
    mutationFn: (given: ApiCall) => send<Decisions>(given),
    // While rules are being edited, an earlier answer may be wrong.
    gcTime: 0,
  });
  const [decision] = attempt.data?.items ?? [];
  const isCurrent =
    attempt.variables !== undefined && JSON.stringify(attempt.variables.body) === JSON.stringify(call.body);
  return (
    <Panel title="Test request" description="Enter what the cloud would send. Leave the other fields empty.">
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReadable && !attempt.isPending) attempt.mutate(call);
        }}
      >
        <div className="grid gap-4 sm:grid-cols-2 lg:grid-cols-3">
          {fields.map(([name, label, placeholder]) => (
            <TextField
              key={name}
              label={label}
              optional={name !== 'kmsOperation'}
              mono
              placeholder={placeholder}
              value={request[name] ?? ''}
              onValue={(value) => setRequest({ ...request, [name]: value })}
            />
          ))}
        </div>
        {attempt.error !== null && <ProblemView error={attempt.error} compact />}
        {decision !== undefined && isCurrent && <Answer decision={decision} edited={draft !== null} />}
        <ApiCallView call={call} />
        <Button type="submit" tone="primary" busy={attempt.isPending} disabled={!isReadable}>
          Test request
        </Button>
      </form>
    </Panel>
  );
};

const Simulator = ({ endpoint }: { endpoint: Endpoint }) => {
  const [text, setText] = useState('');
  const [base, setBase] = useState<Tagged<Endpoint> | null>(null);
  const draft: Draft | null = base === null ? null : { text, rules: readRules(text), base };
  const onDraft = (begun: Tagged<Endpoint> | null): void => {
    setBase(begun);
    setText(begun === null ? '' : JSON.stringify(begun.data.settings.rules, null, 2));
  };
  return (
    <>
      <RulesPanel endpoint={endpoint} draft={draft} onText={setText} onDraft={onDraft} />
      <TryRequest id={endpoint.id} draft={draft} />
      <RecordedRequests
        id={endpoint.id}
        rules={draft === null || typeof draft.rules === 'string' ? undefined : draft.rules}
      />
    </>
  );
};

export const EndpointRulesPage = () => {
  const { id } = route.useParams();
  const query = useQuery({
    queryKey: [endpointsPath, id],
    queryFn: ({ signal }) => send<Endpoint>({ method: 'GET', path: endpointPath(id) }, { signal }),
  });
  return (
    <Page
      title={`Rules of ${query.data?.name ?? 'the endpoint'}`}
      crumbs={[{ text: 'Key store endpoints', to: '/endpoints' }]}
      badge={query.data !== undefined && <StateBadge state={query.data.state} integrity={query.data.integrity} />}
      description="Secondary authorization decides which callers with a valid signature are allowed. Test a rule before you apply it."
    >
      <EndpointTabs id={id} />
      <Async query={query}>{(endpoint) => <Simulator key={id} endpoint={endpoint} />}</Async>
    </Page>
  );
};
