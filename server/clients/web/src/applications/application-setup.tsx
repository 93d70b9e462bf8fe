// Connects a database to a new TDE application: its files, the library on the host, the first
// session, the first master key. The page shows the last two automatically.

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { send } from '../api/client.ts';
import { applicationPath, applicationsPath } from '../api/paths.ts';
import type { AccessGuid, Application, Instance, MasterKey } from '../api/types.ts';
import { Async } from '../ui/page/async.tsx';
import { buttonClass } from '../ui/page/button.tsx';
import { Lines, testConnection } from '../ui/page/config-lines.tsx';
import { Page } from '../ui/page/page.tsx';
import { type SetupStep, SetupSteps } from '../ui/page/steps.tsx';
import { Time } from '../ui/page/time.tsx';
import { ApplicationTabs } from './application-tabs.tsx';

const route = getRouteApi('/tde/applications/$id/setup');
const watchEvery = 3_000;

/** A list of the application, read again while the page is open. */
const useWatched = <T,>(application: Application, part: string, query?: { readonly limit: number }) =>
  useQuery({
    queryKey: [applicationsPath, application.id, part, 'watched'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly T[] }>(
        {
          method: 'GET',
          path: `${applicationPath(application.id)}/${part}`,
          ...(query === undefined ? {} : { query }),
        },
        { signal },
      ),
    refetchInterval: watchEvery,
  }).data?.items;

const registered = (application: Application, live: number): SetupStep => ({
  title: 'The application is registered',
  state: 'done',
  children: (
    <p className="text-muted">
      Its access_guid and pkcs11.toml were shown only once. {live} {live === 1 ? 'is' : 'are'} live. If they are lost,
      rotate the access_guid on the{' '}
      <Link to="/tde/applications/$id" params={{ id: application.id }} className="link">
        page of the application
      </Link>
      .
    </p>
  ),
});

/** The steps on the database host. The first session shows that both succeeded. */
const onHost = (first: Instance | undefined): readonly SetupStep[] => [
  {
    title: 'Install the library on the database host',
    state: first !== undefined ? 'done' : 'next',
    children: (
      <div className="space-y-2">
        <p className="text-muted">
          Run this as root. It installs the library where the database searches for it, and makes the database's user
          its owner.
        </p>
        <Lines label="install command" value="dke provider install --owner oracle:oinstall" />
      </div>
    ),
  },
  {
    title: 'Copy pkcs11.toml to the database host and test the connection',
    state: first !== undefined ? 'done' : 'next',
    children: (
      <div className="space-y-2">
        <p className="text-muted">
          The last command connects as the database would, as its user. It checks the file, agent, network, certificate
          and access_guid, and shows how to fix a failure.
        </p>
        <Lines
          label="commands"
          value={[
            'install -m 600 -o oracle -g oinstall pkcs11.toml /etc/dke/pkcs11.toml',
            'dke provider check --conf /etc/dke/pkcs11.toml',
            testConnection,
          ].join('\n')}
        />
      </div>
    ),
  },
];

const firstSession = (first: Instance | undefined): SetupStep =>
  first === undefined
    ? {
        title: 'Waiting for the first session',
        state: 'waiting',
        children: (
          <div role="status" className="space-y-2">
            <p className="text-muted">Open the keystore in the database. This page updates automatically.</p>
            <Lines
              label="statement"
              value={'ADMINISTER KEY MANAGEMENT SET KEYSTORE OPEN IDENTIFIED BY "<keystore_pin>";'}
            />
          </div>
        ),
      }
    : {
        title: 'First session received',
        state: 'done',
        children: (
          <p role="status">
            {first.process} on <strong>{first.host}</strong>, as {first.osUser}, library {first.libraryVersion},{' '}
            <Time value={first.firstUsedAt} distance />.
          </p>
        ),
      };

const noMasterKey = (application: Application, connected: boolean): SetupStep => ({
  title: 'Waiting for the first master key',
  state: connected ? 'waiting' : 'later',
  children: (
    <div className="space-y-2">
      <p className="text-muted">
        A new database sets a master key. A database with a local wallet{' '}
        <Link
          to="/tde/applications/$id/runbooks"
          params={{ id: application.id }}
          search={{ runbook: 'migrate' }}
          className="link"
        >
          migrates
        </Link>
        .
      </p>
      <Lines
        label="statement"
        value={'ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "<keystore_pin>" CONTAINER = ALL;'}
      />
    </div>
  ),
});

const hasMasterKey = (application: Application, key: MasterKey): SetupStep => ({
  title: 'The database has its master key',
  state: 'done',
  children: (
    <div className="space-y-3" role="status">
      <p>
        <Link to="/keys/$id" params={{ id: key.id }} className="link break-all">
          {key.name}
        </Link>
        , <Time value={key.createdAt} distance />.
      </p>
      <Link to="/tde/applications/$id" params={{ id: application.id }} className={buttonClass('primary')}>
        Open the application
      </Link>
    </div>
  ),
});

const Steps = ({ application }: { application: Application }) => {
  const guids = useWatched<AccessGuid>(application, 'access-guids');
  const first = useWatched<Instance>(application, 'instances')?.at(-1);
  const key = useWatched<MasterKey>(application, 'master-keys', { limit: 1 })?.[0];
  const live = guids?.filter(({ removedAt }) => removedAt === null).length ?? 0;
  return (
    <SetupSteps
      steps={[
        registered(application, live),
        ...onHost(first),
        firstSession(first),
        key === undefined ? noMasterKey(application, first !== undefined) : hasMasterKey(application, key),
      ]}
    />
  );
};

export const ApplicationSetupPage = () => {
  const { id } = route.useParams();
  const query = useQuery({
    queryKey: [applicationsPath, id],
    queryFn: ({ signal }) => send<Application>({ method: 'GET', path: applicationPath(id) }, { signal }),
  });
  return (
    <Page
      title={`Connect ${query.data?.name ?? 'a database'}`}
      description="From the registration to the first master key. You can leave at any time. Progress is saved."
      crumbs={[{ text: 'TDE applications', to: '/tde/applications' }]}
    >
      <ApplicationTabs id={id} />
      <Async query={query} lines={6}>
        {(application) => <Steps application={application} />}
      </Async>
    </Page>
  );
};
