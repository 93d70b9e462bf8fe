// The frame around every page: navigation by object, the theme, who is signed in. Without a session
// it is the sign-in page, at the URL that was asked for.

import { onlineManager, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, type LinkProps, Outlet, useLocation, useRouter } from '@tanstack/react-router';
import { type ReactNode, useCallback, useEffect, useId, useRef, useState } from 'react';
import { send } from '../api/client.ts';
import type { Permission, Session, Tenant } from '../api/types.ts';
import { PrintedHead } from '../audit/printed-head.tsx';
import { PendingNodes } from '../service/pending-nodes.tsx';
import { needsToday, waitingQuery } from '../service/today.ts';
import { sessionQuery, useSignOut, wasEnded } from '../session/current-session.ts';
import { guideOf } from '../session/guide.ts';
import { useMay } from '../session/may.ts';
import { chooseTenant, useTenant } from '../session/tenant.ts';
import { ExactTimesToggle, ZoneToggle } from '../ui/fields/zone.tsx';
import { hasUnsaved } from '../ui/forms/unsaved.tsx';
import { IconButton } from '../ui/page/button.tsx';
import { Icon, type IconName, Mark } from '../ui/page/icon.tsx';
import { ProblemView } from '../ui/page/problem-view.tsx';
import { ThemeToggle } from '../ui/page/theme-toggle.tsx';
import { CommandPalette, type Found, useSearchKey } from './command-palette.tsx';
import { InContact } from './contact.tsx';
import { useFolded } from './folded.ts';
import { loadPages } from './load-pages.ts';
import { OwnResources } from './own-resources.tsx';
import { Invitation, SignIn, Unfinished } from './sign-in.tsx';

interface NavigationItem {
  readonly to: NonNullable<LinkProps['to']>;
  readonly text: string;
  readonly icon: IconName;
  readonly exact?: boolean;
  /** Who lacks it does not see the page in the navigation; null: the page is for everyone. */
  readonly needs: Permission | null;
}

const navigation: readonly { readonly title: string | null; readonly items: readonly NavigationItem[] }[] = [
  {
    title: null,
    items: [
      { to: '/', text: 'Overview', icon: 'overview', needs: null, exact: true },
      { to: '/notifications', text: 'Notifications', icon: 'bell', needs: 'notifications:read' },
    ],
  },
  {
    title: 'Keys',
    items: [
      { to: '/vaults', text: 'Vaults', icon: 'vault', needs: 'vaults:read' },
      { to: '/keys', text: 'Keys', icon: 'key', needs: 'keys:read' },
    ],
  },
  {
    title: 'Database encryption',
    items: [
      { to: '/tde/groups', text: 'Groups', icon: 'group', needs: 'applications:read' },
      { to: '/tde/applications', text: 'Applications', icon: 'application', needs: 'applications:read' },
      { to: '/runbooks', text: 'Runbooks', icon: 'book', needs: 'applications:read' },
    ],
  },
  {
    title: 'Cloud key stores',
    items: [
      { to: '/endpoints', text: 'Key store endpoints', icon: 'endpoint', needs: 'endpoints:read' },
      { to: '/external-key-stores', text: 'External key stores', icon: 'active', needs: 'endpoints:read' },
      { to: '/requests', text: 'Request log', icon: 'clock', needs: 'requests:read' },
      { to: '/diagnostics', text: 'Diagnostics', icon: 'pulse', needs: 'endpoints:read' },
    ],
  },
  {
    title: 'Audit and recovery',
    items: [
      { to: '/audit', text: 'Audit log', icon: 'audit', needs: 'audit:read' },
      { to: '/approvals', text: 'Approvals', icon: 'thumb', needs: 'approvals:read' },
      { to: '/snapshots', text: 'Snapshots', icon: 'snapshot', needs: 'snapshots:read' },
    ],
  },
  {
    title: 'Access',
    items: [
      { to: '/users', text: 'Users', icon: 'users', needs: 'users:read' },
      { to: '/roles', text: 'Roles', icon: 'shield', needs: null },
      { to: '/tokens', text: 'API tokens', icon: 'token', needs: 'tokens:read' },
    ],
  },
  {
    title: 'Service',
    items: [
      { to: '/tenants', text: 'Tenants', icon: 'tenant', needs: 'tenants:read' },
      { to: '/nodes', text: 'Nodes', icon: 'server', needs: 'nodes:read' },
      { to: '/service', text: 'Service state', icon: 'pulse', needs: 'status:read' },
      { to: '/settings', text: 'Settings', icon: 'gear', needs: 'status:read' },
    ],
  },
];

/** The sections and pages that the person may open. */
const useNavigation = (): typeof navigation => {
  const may = useMay();
  return navigation.flatMap(({ title, items }) => {
    const open = items.filter(({ needs }) => needs === null || may(needs, { scoped: false }));
    return open.length === 0 ? [] : [{ title, items: open }];
  });
};

/** Whether a page, or one below it, is the current one. */
const isAt = (path: string, to: string): boolean => path === to || (to !== '/' && path.startsWith(`${to}/`));

const Section = ({
  section: { title, items },
  path,
  onNavigate,
}: {
  section: (typeof navigation)[number];
  path: string;
  onNavigate: (() => void) | undefined;
}) => {
  const [isFolded, fold] = useFolded(title ?? '');
  const id = useId();
  // The current place is always seen.
  const isOpen = !isFolded || items.some(({ to }) => isAt(path, String(to)));
  return (
    <div>
      {title !== null && (
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={() => fold(!isFolded)}
          className="flex min-h-6 w-full items-center gap-1 rounded px-2.5 text-left text-xs font-medium text-muted hover:text-ink"
        >
          <Icon name="chevron" className={`size-3 transition-transform ${isOpen ? 'rotate-90' : ''}`} />
          {title}
        </button>
      )}
      <ul id={id} hidden={!isOpen}>
        {items.map((item) => (
          <li key={item.text}>
            <Link
              to={item.to}
              activeOptions={{ exact: item.exact ?? false, includeSearch: false }}
              {...(onNavigate === undefined ? {} : { onClick: onNavigate })}
              className="flex min-h-9 items-center gap-2.5 rounded-md px-2.5 py-0.5 transition-colors lg:min-h-6.5"
              activeProps={{ className: 'bg-accent-soft text-accent font-semibold' }}
              inactiveProps={{ className: 'text-ink hover:bg-hover' }}
            >
              <Icon name={item.icon} className="size-4.5" />
              {item.text}
            </Link>
          </li>
        ))}
      </ul>
    </div>
  );
};

const Navigation = ({ onNavigate }: { onNavigate?: () => void }) => {
  const path = useLocation({ select: ({ pathname }) => pathname });
  const ref = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the path says which link is the current one
  useEffect(() => {
    ref.current?.querySelector('[aria-current="page"]')?.scrollIntoView({ block: 'nearest' });
  }, [path]);
  return (
    <nav ref={ref} aria-label="Main" className="min-h-0 flex-1 space-y-0.5 overflow-y-auto px-3 py-1">
      {useNavigation().map((section) => (
        <Section key={section.title ?? 'top'} section={section} path={path} onNavigate={onNavigate} />
      ))}
      <OwnResources onNavigate={onNavigate} />
    </nav>
  );
};

const Account = ({ name }: { name: string }) => {
  const signOut = useSignOut();
  return (
    <div className="space-y-1 border-t border-line px-4 py-2">
      <div className="flex items-center justify-between gap-2">
        <div className="min-w-0">
          <p className="sr-only">Signed in as</p>
          <p className="truncate font-medium" title={name}>
            <Link to="/profile" className="rounded hover:underline">
              {name}
            </Link>
          </p>
        </div>
        <IconButton icon="signOut" label="Sign out" onClick={() => signOut.mutate()} className="-mr-2" />
      </div>
      {signOut.error !== null && <ProblemView error={signOut.error} compact />}
      <div className="flex flex-wrap gap-1">
        <ThemeToggle />
        <ZoneToggle />
        <ExactTimesToggle />
      </div>
    </div>
  );
};

const Brand = () => (
  <Link to="/" className="flex items-center gap-2.5 rounded-md">
    <Mark className="size-7" />
    <span className="font-semibold tracking-tight">DKE console</span>
  </Link>
);

/** The navigation on narrow screens: a modal drawer. */
const Drawer = ({ name }: { name: string }) => {
  const ref = useRef<HTMLDialogElement>(null);
  return (
    <>
      <IconButton icon="menu" label="Open navigation" onClick={() => ref.current?.showModal()} />
      <dialog
        ref={ref}
        aria-label="Navigation"
        closedby="any"
        className="m-0 h-dvh max-h-none w-72 max-w-[85vw] bg-surface shadow-float"
      >
        <div className="flex h-full flex-col">
          <div className="flex items-center justify-between border-b border-line py-2 pr-2 pl-4">
            <Brand />
            <IconButton icon="close" label="Close navigation" onClick={() => ref.current?.close()} />
          </div>
          <Navigation onNavigate={() => ref.current?.close()} />
          <Account name={name} />
        </div>
      </dialog>
    </>
  );
};

/** Pages that others lead to, and that people look for by name. */
const further: readonly (NavigationItem & { readonly section: string })[] = [
  { to: '/keys/export', text: 'Inventory of keys', icon: 'download', needs: 'keys:read', section: 'Keys' },
  { to: '/reference', text: 'API reference', icon: 'book', needs: null, section: 'Access' },
];

/** The pages as search finds them. */
const useSearchable = (): readonly Found[] => {
  const may = useMay();
  const others = further.filter(({ needs }) => needs === null || may(needs, { scoped: false }));
  return [
    ...useNavigation().flatMap(({ title, items }) =>
      items.map(({ to, text, icon }) => ({ kind: title ?? 'Page', name: text, icon, to: String(to) })),
    ),
    ...others.map(({ to, text, icon, section }) => ({ kind: section, name: text, icon, to: String(to) })),
  ];
};

/** Chooses the tenant to act in; hidden for users who have only one. */
const TenantSwitcher = () => {
  const client = useQueryClient();
  const tenant = useTenant();
  const mayRead = useMay()('tenants:read');
  const tenants = useQuery({
    queryKey: ['/api/tenants', 'choices'],
    queryFn: ({ signal }) =>
      send<{ readonly items: readonly Tenant[] }>({ method: 'GET', path: '/api/tenants' }, { signal }),
    staleTime: 60_000,
    retry: false,
    enabled: mayRead,
  }).data?.items.filter(({ state }) => state === 'active' || state === 'suspended');
  if (tenants === undefined || (tenants.length < 2 && tenant === null)) return null;
  return (
    <select
      aria-label="Tenant"
      value={tenant ?? ''}
      onChange={(event) => {
        chooseTenant(event.target.value === '' ? null : event.target.value);
        void client.resetQueries();
      }}
      className="min-h-9 max-w-52 min-w-0 rounded-md border border-line-strong/70 bg-surface px-2.5 py-1"
    >
      <option value="">All tenants</option>
      {tenants.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
};

/** The number of notifications that need attention today, on top of every page. */
const Bell = () => {
  const mayRead = useMay()('notifications:read');
  const items = useQuery({ ...waitingQuery, enabled: mayRead }).data?.items;
  const count = items?.filter((item) => needsToday(item, Date.now())).length ?? 0;
  const text =
    count === 0 ? 'Notifications: none need attention today' : `Notifications: ${count} need attention today`;
  if (!mayRead) return null;
  return (
    <Link
      to="/notifications"
      aria-label={text}
      title={text}
      className="relative inline-flex size-9 shrink-0 items-center justify-center rounded-md text-muted hover:bg-hover hover:text-ink"
    >
      <Icon name="bell" className="size-5" />
      {count > 0 && (
        <span className="absolute top-0.5 right-0.5 min-w-4 rounded-full bg-danger px-1 text-center text-[0.65rem] leading-4 font-semibold text-on-danger">
          {count > 99 ? '99+' : count}
        </span>
      )}
    </Link>
  );
};

/**
 * The part of the guide that is about the page, in a tab of its own: nothing typed here is lost.
 */
const GuideLink = () => {
  const path = useLocation({ select: ({ pathname }) => pathname });
  return (
    <a
      href={guideOf(path)}
      target="_blank"
      rel="noopener"
      aria-label="Guide (opens a new tab)"
      title="Guide"
      className="inline-flex size-9 shrink-0 items-center justify-center rounded-md text-muted hover:bg-hover hover:text-ink"
    >
      <Icon name="book" className="size-5" />
    </a>
  );
};

const TopBar = ({ onSearch }: { onSearch: () => void }) => (
  <div className="flex min-w-0 flex-1 items-center justify-end gap-2">
    <TenantSwitcher />
    <button
      type="button"
      onClick={onSearch}
      className="inline-flex min-h-9 items-center gap-2 rounded-md border border-line px-2.5 text-muted hover:bg-hover hover:text-ink lg:min-w-56"
    >
      <Icon name="search" />
      <span className="max-sm:sr-only lg:flex-1 lg:text-left">Search</span>
      <kbd className="text-xs max-lg:hidden">Ctrl K</kbd>
    </button>
    <GuideLink />
    <Bell />
  </div>
);

/**
 * After a change of page the heading gets the focus, so that keyboard and screen reader start at
 * the new content.
 */
const useFocusOnNavigation = (): void => {
  const router = useRouter();
  useEffect(
    () =>
      router.subscribe('onRendered', ({ fromLocation, toLocation }) => {
        if (fromLocation === undefined || fromLocation.pathname === toLocation.pathname) return;
        document.querySelector<HTMLElement>('#main h1')?.focus({ preventScroll: true });
      }),
    [router],
  );
};

/**
 * Covers a page whose session is over, so that nothing of it is seen, and nothing typed in it is
 * lost.
 */
const Cover = ({ children }: { children: ReactNode }) => {
  const ref = useRef<HTMLDialogElement>(null);
  const [before] = useState(() => ({ title: document.title, focus: document.activeElement }));
  useEffect(() => {
    // Queries of the page below wait for the next session.
    onlineManager.setOnline(false);
    ref.current?.showModal();
    return () => {
      onlineManager.setOnline(true);
      document.title = before.title;
      if (before.focus instanceof HTMLElement && before.focus.isConnected) before.focus.focus();
    };
  }, [before]);
  return (
    <dialog
      ref={ref}
      aria-label="Sign in"
      onCancel={(event) => event.preventDefault()}
      // The browser closes a dialog at the second Escape even when the first was refused.
      onClose={({ currentTarget }) => {
        if (!currentTarget.open) currentTarget.showModal();
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') event.preventDefault();
      }}
      className="m-0 h-dvh max-h-none w-screen max-w-none overflow-y-auto bg-ground"
    >
      {children}
    </dialog>
  );
};

/** The first page goes before all others, in milliseconds. */
const loadAfterMs = 500;

const Frame = ({ name, isCovered, onSearch }: { name: string; isCovered: boolean; onSearch: () => void }) => {
  const router = useRouter();
  useFocusOnNavigation();
  useEffect(() => {
    const waiting = setTimeout(() => void loadPages(router), loadAfterMs);
    return () => clearTimeout(waiting);
  }, [router]);
  return (
    // Paper has no layers: what is covered is not printed.
    <div
      inert={isCovered}
      className={`min-h-dvh lg:grid lg:grid-cols-[15rem_minmax(0,1fr)] print:block ${isCovered ? 'print:hidden' : ''}`}
    >
      <a
        href="#main"
        className="sr-only rounded-md bg-accent px-3 py-2 text-on-accent focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50"
      >
        Skip to content
      </a>
      <aside data-screen className="sticky top-0 hidden h-dvh flex-col border-r border-line bg-surface lg:flex">
        <div className="px-5 pt-3 pb-1">
          <Brand />
        </div>
        <Navigation />
        <Account name={name} />
      </aside>
      <header
        data-screen
        className="sticky top-0 z-30 flex items-center gap-1 border-b border-line bg-surface px-2 py-1.5 lg:hidden"
      >
        <Drawer name={name} />
        <Mark className="size-7" />
        <TopBar onSearch={onSearch} />
      </header>
      <div className="min-w-0">
        <header data-screen className="sticky top-0 z-20 hidden border-b border-line bg-ground/95 px-8 py-1.5 lg:flex">
          <TopBar onSearch={onSearch} />
        </header>
        <PendingNodes />
        <InContact>
          <main id="main" tabIndex={-1} className="min-w-0 outline-none">
            <PrintedHead />
            <Outlet />
          </main>
        </InContact>
      </div>
    </div>
  );
};

export const Shell = () => {
  const session = useQuery(sessionQuery);
  const [searching, setSearching] = useState(false);
  /** The session that the page below was opened in. */
  const held = useRef<Session | null>(null);
  const [invited, setInvited] = useState(() => location.pathname === '/invitation' && location.hash.length > 1);
  const openSearch = useCallback(() => setSearching(true), []);
  useSearchKey(openSearch);
  const searchable = useSearchable();
  if (invited) return <Invitation other={session.data?.name} onDone={() => setInvited(false)} />;
  if (session.data === undefined) {
    return (
      <main className="mx-auto max-w-lg px-4 py-16">
        {session.error === null ? (
          <p className="text-center text-muted" role="status">
            Opening the console…
          </p>
        ) : (
          <ProblemView error={session.error} onRetry={() => void session.refetch()} />
        )}
      </main>
    );
  }
  const entry =
    session.data === null ? (
      <SignIn />
    ) : session.data.missing === null ? null : (
      <Unfinished missing={session.data.missing} />
    );
  if (entry === null) held.current = session.data;
  // What was typed stays below, unless its person signs out or another one signs in.
  const below = entry === null || (wasEnded() && hasUnsaved()) ? held.current : null;
  return (
    <>
      {below !== null && <Frame key={below.id} name={below.name} isCovered={entry !== null} onSearch={openSearch} />}
      {entry !== null && (below === null ? entry : <Cover>{entry}</Cover>)}
      {entry === null && searching && <CommandPalette pages={searchable} onClose={() => setSearching(false)} />}
    </>
  );
};
