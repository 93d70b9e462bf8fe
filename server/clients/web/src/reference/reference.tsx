// The reference of the API, from the description that this service serves: every operation with its
// parameters, members, an example as curl and as a `dke` command, and its answer.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Fragment, type ReactNode, useEffect, useRef, useState } from 'react';
import { send } from '../api/client.ts';
import { TokenTabs } from '../people/token-tabs.tsx';
import { TextFilter } from '../ui/fields/filters.tsx';
import { ApiCallView } from '../ui/forms/api-call.tsx';
import { Async } from '../ui/page/async.tsx';
import { Page, Panel } from '../ui/page/page.tsx';
import { EmptyState } from '../ui/page/problem-view.tsx';
import {
  type ApiDocument,
  answerOf,
  bodyOf,
  exampleCall,
  isFound,
  type Member,
  membersOf,
  type Operation,
  operationsOf,
  typeOf,
} from './describe-api.ts';

const route = getRouteApi('/reference');

/** A text of the description: `code` stands between backticks. */
const Text = ({ children }: { children: string }) =>
  children.split('`').map((part, at) => {
    const key = at;
    return at % 2 === 0 ? <Fragment key={key}>{part}</Fragment> : <code key={key}>{part}</code>;
  });

const Members = ({ title, members }: { title: string; members: readonly Member[] }) => {
  if (members.length === 0) return null;
  return (
    <div>
      <h4 className="mb-1 font-medium">{title}</h4>
      <dl className="divide-y divide-line border-y border-line">
        {members.map(({ name, type, required, description }) => (
          <div key={name} className="grid gap-x-4 py-1.5 sm:grid-cols-[minmax(9rem,1fr)_3fr]">
            <dt className="min-w-0">
              <code className="wrap-anywhere">{name}</code>
              {required && <span className="ml-2 text-xs text-muted">required</span>}
            </dt>
            <dd className="min-w-0 wrap-anywhere">
              <span className="text-muted">{type}</span>
              {description !== undefined && (
                <>
                  {' · '}
                  <Text>{description}</Text>
                </>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
};

const Json = ({ title, value }: { title: string; value: unknown }) =>
  value === undefined ? null : (
    <div>
      <h4 className="mb-1 font-medium">{title}</h4>
      <pre className="rounded-lg border border-line bg-sunken p-3 text-xs wrap-anywhere whitespace-pre-wrap">
        {JSON.stringify(value, null, 2)}
      </pre>
    </div>
  );

const Details = ({ operation, document }: { operation: Operation; document: ApiDocument }) => {
  const { ifMatch, ...call } = exampleCall(operation);
  const body = bodyOf(operation);
  const answer = answerOf(operation);
  const parameters = (operation.parameters ?? []).map(
    ({ name, in: place, required = false, description, schema = {} }): Member => ({
      name,
      type: `${place}, ${typeOf(schema)}`,
      required,
      description: description ?? schema.description,
    }),
  );
  return (
    <div className="space-y-4 border-t border-line px-4 py-3">
      {operation.description?.split('\n\n').map((paragraph) => (
        <p key={paragraph} className="max-w-prose">
          <Text>{paragraph}</Text>
        </p>
      ))}
      <Members title="Parameters" members={parameters} />
      <Members title="Members of the body" members={membersOf(body?.schema, document)} />
      <ApiCallView call={call} ifMatch={ifMatch} />
      <Members
        title={`Answer ${answer.status}: ${answer.text}`}
        members={membersOf(answer.content?.schema, document)}
      />
      {answer.content === undefined && (
        <p>
          <span className="font-medium">Answer {answer.status}:</span> {answer.text}
        </p>
      )}
      <Json title="Example of the answer" value={answer.content?.example} />
    </div>
  );
};

const OperationRow = ({
  operation,
  document,
  isNamed,
  onNamed,
}: {
  operation: Operation;
  document: ApiDocument;
  /** The address names it. */
  isNamed: boolean;
  onNamed: (operationId: string) => void;
}) => {
  const ref = useRef<HTMLDetailsElement>(null);
  const [isOpen, setOpen] = useState(isNamed);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the address is followed once, when the page opens
  useEffect(() => {
    if (isNamed) ref.current?.scrollIntoView({ block: 'start' });
  }, []);
  return (
    <details
      ref={ref}
      open={isOpen}
      onToggle={({ currentTarget: { open } }) => {
        setOpen(open);
        if (open && !isNamed) onNamed(operation.operationId);
      }}
      className="group scroll-mt-4"
    >
      <summary className="flex min-h-11 list-none flex-wrap items-center gap-x-3 gap-y-0.5 px-4 py-2 hover:bg-hover [&::-webkit-details-marker]:hidden">
        <code className="w-14 shrink-0 text-xs font-semibold">{operation.method}</code>
        <span className="min-w-0 flex-1 basis-60">
          <span className="block">{operation.summary}</span>
          <code className="block text-xs wrap-anywhere text-muted">{operation.path}</code>
        </span>
      </summary>
      {isOpen && <Details operation={operation} document={document} />}
    </details>
  );
};

const Groups = ({
  document,
  find,
  named,
  onNamed,
}: {
  document: ApiDocument;
  find: string;
  named: string | undefined;
  onNamed: (operationId: string) => void;
}): ReactNode => {
  const found = operationsOf(document).filter((operation) => isFound(operation, find));
  if (found.length === 0)
    return (
      <Panel>
        <EmptyState title="No operation found">Search for a part of its path, name or description.</EmptyState>
      </Panel>
    );
  return document.tags.map(({ name, description }) => {
    const own = found.filter(({ tags }) => tags.includes(name));
    if (own.length === 0) return null;
    return (
      <Panel key={name} title={name} description={description} flush>
        <div className="divide-y divide-line">
          {own.map((operation) => (
            <OperationRow
              key={operation.operationId}
              operation={operation}
              document={document}
              isNamed={operation.operationId === named}
              onNamed={onNamed}
            />
          ))}
        </div>
      </Panel>
    );
  });
};

export const ReferencePage = () => {
  const { find = '', operation } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery({
    queryKey: ['/api/openapi.json'],
    queryFn: ({ signal }) => send<ApiDocument>({ method: 'GET', path: '/api/openapi.json' }, { signal }),
    staleTime: 'static',
  });
  const go = (change: { readonly find?: string | undefined; readonly operation?: string | undefined }): void =>
    void navigate({ search: (previous) => ({ ...previous, ...change }), replace: true, resetScroll: false });
  return (
    <Page
      title="API reference"
      description="Every operation of this service. Programs sign in with an API token. The examples read it from the file authorization.txt, as “authorization: Bearer” and the token."
      actions={
        <a href="/api/openapi.json" download="dke-openapi.json" className="link">
          OpenAPI document
        </a>
      }
    >
      <TokenTabs />
      <search className="block max-w-md">
        <TextFilter label="Find an operation" value={find || undefined} onValue={(next) => go({ find: next })} />
      </search>
      <Async query={query} lines={8}>
        {(document) => (
          <Groups document={document} find={find} named={operation} onNamed={(next) => go({ operation: next })} />
        )}
      </Async>
    </Page>
  );
};
