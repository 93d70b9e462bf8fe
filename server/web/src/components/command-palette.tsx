// Search over everything, with Ctrl-K or /: pages by name, and what the lists hold, by name, id, label or prefix. The arrow keys
// choose, Enter opens.

import { useQueries } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useId, useState } from 'react';
import { send } from '../api/client.ts';
import { Dialog } from './dialog.tsx';
import { Icon, type IconName } from './icon.tsx';
import type { ListPage } from './list-view.tsx';

export interface Found {
  readonly kind: string;
  readonly name: string;
  readonly detail?: string | undefined;
  readonly icon: IconName;
  readonly to: string;
}

interface Named {
  readonly id: string;
  readonly name: string;
  readonly [member: string]: unknown;
}

const sources: readonly {
  readonly kind: string;
  readonly path: string;
  readonly icon: IconName;
  readonly also: readonly string[];
  readonly to: (id: string) => string;
}[] = [
  { kind: 'Key', path: '/api/keys', icon: 'key', also: ['type', 'state'], to: (id) => `/keys/${id}` },
  { kind: 'Vault', path: '/api/vaults', icon: 'vault', also: ['state'], to: (id) => `/keys?vaultId=${id}` },
  {
    kind: 'TDE application',
    path: '/api/tde/applications',
    icon: 'application',
    also: ['appId'],
    to: (id) => `/tde/applications/${id}`,
  },
  { kind: 'Group', path: '/api/tde/groups', icon: 'group', also: [], to: (id) => `/tde/applications?groupId=${id}` },
  { kind: 'Endpoint', path: '/api/endpoints', icon: 'endpoint', also: ['prefix'], to: (id) => `/endpoints/${id}` },
  {
    kind: 'External key store',
    path: '/api/external-key-stores',
    icon: 'active',
    also: ['customKeyStoreId'],
    to: () => '/external-key-stores',
  },
];
const shown = 12;

const words = (item: Named, also: readonly string[]): string =>
  [item.id, item.name, ...also.map((member) => item[member])].filter((part) => typeof part === 'string').join(' ');

/** Of so many of each list; the server's own filters find the rest. */
const loaded = 1000;

const useFound = (text: string, pages: readonly Found[]): readonly Found[] => {
  const lists = useQueries({
    queries: sources.map(({ path }) => ({
      queryKey: [path, 'search'],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        send<ListPage<Named>>({ method: 'GET', path, query: { limit: loaded } }, { signal }),
      staleTime: 30_000,
      retry: false,
    })),
  });
  const asked = text.trim().toLowerCase();
  const fits = (candidate: string): boolean =>
    asked.split(/\s+/).every((part) => candidate.toLowerCase().includes(part));
  const things = sources.flatMap(({ kind, icon, also, to }, index) =>
    (lists[index]?.data?.items ?? [])
      .filter((item) => fits(`${kind} ${words(item, also)}`))
      .map((item): Found => ({ kind, icon, name: item.name, detail: item.id, to: to(encodeURIComponent(item.id)) })),
  );
  const found = [...pages.filter(({ kind, name }) => fits(`${kind} ${name}`)), ...(asked === '' ? [] : things)];
  const id = text.trim();
  if (found.length === 0 && /^[0-9a-f-]{8,}$/i.test(id))
    return [
      {
        kind: 'Audit log',
        name: `Records about ${id}`,
        icon: 'audit',
        to: `/audit?subjectId=${encodeURIComponent(id)}`,
      },
      {
        kind: 'Audit log',
        name: `Records of the request ${id}`,
        icon: 'audit',
        to: `/audit?requestId=${encodeURIComponent(id)}`,
      },
      {
        kind: 'Request log',
        name: `Requests with the KMS request id ${id}`,
        icon: 'clock',
        to: `/requests?kmsRequestId=${encodeURIComponent(id)}`,
      },
    ];
  return found.slice(0, shown);
};

export const CommandPalette = ({ pages, onClose }: { pages: readonly Found[]; onClose: () => void }) => {
  const id = useId();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const found = useFound(text, pages);
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
      <div role="listbox" id={id} aria-label="Found" className="mt-3 max-h-[50dvh] overflow-y-auto">
        {found.map((item, index) => (
          <div
            key={`${item.kind} ${item.to} ${item.name}`}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onClick={() => open(item)}
            onKeyDown={(event) => event.key === 'Enter' && open(item)}
            className={`flex min-h-11 cursor-pointer items-center gap-3 rounded-md px-3 py-1.5 ${index === chosen ? 'bg-accent-soft' : 'hover:bg-hover'}`}
          >
            <Icon name={item.icon} className="size-5 text-accent" />
            <span className="min-w-0 flex-1">
              <span className="block font-medium wrap-anywhere">{item.name}</span>
              {item.detail !== undefined && <code className="block truncate text-xs text-muted">{item.detail}</code>}
            </span>
            <span className="text-xs text-muted">{item.kind}</span>
          </div>
        ))}
      </div>
      <p role="status" className="mt-2 text-xs text-muted">
        {found.length === 0 ? 'Nothing is called so.' : `${found.length} found; arrow keys choose, Enter opens`}
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
