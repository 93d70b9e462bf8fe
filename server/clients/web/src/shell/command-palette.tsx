// Search over everything, with Ctrl-K or /: pages by name, and what the service finds by names,
// ids, labels and request ids. The arrow keys choose, Enter opens.

import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useId, useState } from 'react';
import { send } from '../api/client.ts';
import type { FoundItem, SearchResult } from '../api/types.ts';
import { useSettled } from '../ui/fields/settled.ts';
import { Dialog } from '../ui/forms/dialog.tsx';
import { Icon, type IconName } from '../ui/page/icon.tsx';
import { LongName } from '../ui/page/long-name.tsx';

export interface Found {
  readonly kind: string;
  readonly name: string;
  readonly detail?: string | undefined;
  readonly icon: IconName;
  readonly to: string;
}

/** The name of each kind, in singular and plural. */
const kinds = {
  key: ['Key', 'keys', 'key'],
  vault: ['Vault', 'vaults', 'vault'],
  group: ['Group', 'groups', 'group'],
  application: ['TDE application', 'TDE applications', 'application'],
  endpoint: ['Endpoint', 'endpoints', 'endpoint'],
  'external-key-store': ['External key store', 'external key stores', 'active'],
  user: ['User', 'users', 'user'],
  token: ['API token', 'API tokens', 'token'],
  tenant: ['Tenant', 'tenants', 'tenant'],
  node: ['Node', 'nodes', 'server'],
  snapshot: ['Snapshot', 'snapshots', 'snapshot'],
  approval: ['Approval', 'approvals', 'thumb'],
  request: ['Request log', 'request log records', 'clock'],
  'audit-actor': ['Audit log: actor', 'audit log actors', 'audit'],
  'audit-request': ['Audit log: request', 'audit log records', 'audit'],
  'audit-subject': ['Audit log: subject', 'audit log records', 'audit'],
} as const satisfies Record<FoundItem['kind'], readonly [one: string, several: string, icon: IconName]>;

/** The field that matched, if it is neither the name nor the id, which are both shown. */
const places: Partial<Record<FoundItem['foundIn'], string>> = {
  'display-name': 'display name',
  email: 'e-mail address',
  'app-id': 'app_id',
  prefix: 'prefix',
  tag: 'tag',
  'access-key-id': 'access key id',
  'custom-key-store-id': 'custom key store id',
  'kms-request-id': 'KMS request id',
};

const perKind = 6;

interface Search {
  readonly found: readonly Found[];
  /** One line: the number of results, or why there are none. */
  readonly message: string;
}

const useFound = (text: string, pages: readonly Found[]): Search => {
  const asked = useSettled(text.trim());
  const isAsked = /[\p{L}\p{N}]/u.test(asked);
  const { data, error, isFetching } = useQuery({
    queryKey: ['/api/search', asked],
    queryFn: ({ signal }) =>
      send<SearchResult>(
        { method: 'GET', path: '/api/search', query: { q: asked.slice(0, 200), limit: perKind } },
        { signal },
      ),
    enabled: isAsked,
    placeholderData: keepPreviousData,
    staleTime: 10_000,
    retry: false,
  });
  const words = text.trim().toLowerCase().split(/\s+/);
  const fits = (candidate: string): boolean => words.every((word) => candidate.toLowerCase().includes(word));
  const named = pages.filter(({ name }) => fits(name));
  // Pages found by their section come last: its name is a word in other names, too.
  const beside = pages.filter(({ kind, name }) => !fits(name) && fits(`${kind} ${name}`));
  const things = (isAsked ? (data?.items ?? []) : []).map((item): Found => {
    const [kind, , icon] = kinds[item.kind];
    const place = places[item.foundIn];
    const about = [
      item.state === 'active' || item.state === 'enabled' ? null : item.state,
      place && `found by ${place}`,
    ];
    return {
      kind,
      icon,
      name: item.name,
      detail: [item.id, ...about.filter((part) => part != null)].join(', '),
      to: item.page,
    };
  });
  const found = [...named, ...things, ...beside];
  const more = isAsked ? (data?.more ?? []) : [];
  if (error !== null) return { found, message: `The search failed: ${error.message}` };
  if (isAsked && (isFetching || asked !== text.trim())) return { found, message: 'Searching…' };
  if (found.length === 0)
    return {
      found,
      message: 'No match. Type the start of a word in the name, the start of the id, or a complete request id.',
    };
  const others =
    more.length === 0 ? '' : ` More ${more.map((kind) => kinds[kind][1]).join(', ')} match. Type more of the name.`;
  return { found, message: `${found.length} found. Select with the arrow keys, open with Enter.${others}` };
};

/** Keeps the selected item in view while the arrow keys move through a long list. */
const intoView = (element: HTMLElement | null): void => element?.scrollIntoView({ block: 'nearest' });

export const CommandPalette = ({ pages, onClose }: { pages: readonly Found[]; onClose: () => void }) => {
  const id = useId();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const { found, message } = useFound(text, pages);
  const chosen = Math.min(at, Math.max(found.length - 1, 0));
  const open = (item: Found | undefined): void => {
    if (item === undefined) return;
    onClose();
    const [to = '/', search = ''] = item.to.split('?');
    void navigate({ to, search: Object.fromEntries(new URLSearchParams(search)) });
  };
  return (
    <Dialog title="Search" wide onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-label="Search for pages, names and ids"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found.length === 0 ? undefined : `${id}-${chosen}`}
        autoComplete="off"
        spellCheck={false}
        autoFocus
        placeholder="A name, an id, a label, a page…"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
          if (step !== 0 && found.length > 0) {
            event.preventDefault();
            setAt((chosen + step + found.length) % found.length);
          }
          if (event.key === 'Enter') open(found[chosen]);
        }}
        className="min-h-11 w-full rounded-md border border-line-strong bg-surface px-3 text-base placeholder:text-muted"
      />
      <div role="listbox" id={id} aria-label="Search results" className="mt-3 max-h-[50dvh] overflow-y-auto">
        {found.map((item, index) => (
          <div
            key={`${item.kind} ${item.to} ${item.name}`}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onClick={() => open(item)}
            onKeyDown={(event) => event.key === 'Enter' && open(item)}
            ref={index === chosen ? intoView : undefined}
            className={`flex min-h-11 cursor-pointer items-center gap-3 rounded-md px-3 py-1.5 ${index === chosen ? 'bg-accent-soft' : 'hover:bg-hover'}`}
          >
            <Icon name={item.icon} className="size-5 text-accent" />
            <span className="min-w-0 flex-1">
              <span className="line-clamp-2 font-medium wrap-anywhere" title={item.name}>
                <LongName>{item.name}</LongName>
              </span>
              {item.detail !== undefined && <code className="block truncate text-xs text-muted">{item.detail}</code>}
            </span>
            <span className="shrink-0 text-xs text-muted">{item.kind}</span>
          </div>
        ))}
      </div>
      <p role="status" className="mt-2 text-xs text-muted">
        {message}
      </p>
    </Dialog>
  );
};

/** Opens with Ctrl-K (or Command-K), and with / outside of fields. */
export const useSearchKey = (open: () => void): void => {
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const typing = event.target instanceof HTMLElement && event.target.matches('input, textarea, select');
      const asked = (event.key === 'k' && (event.ctrlKey || event.metaKey)) || (event.key === '/' && !typing);
      if (!asked || document.querySelector('dialog[open]') !== null) return;
      event.preventDefault();
      open();
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, [open]);
};
