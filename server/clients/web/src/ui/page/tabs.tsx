// Several views of one thing, each at an address of its own: links that look like tabs, so that
// Back, bookmarks and a new window work as everywhere.

import { Link, type LinkProps } from '@tanstack/react-router';

export interface Tab {
  readonly text: string;
  readonly to: NonNullable<LinkProps['to']>;
  readonly params?: { readonly id: string };
  readonly exact?: boolean;
}

export const Tabs = ({ label, tabs }: { label: string; tabs: readonly Tab[] }) => (
  <nav aria-label={label} className="-mt-2 border-b border-line">
    <ul className="flex flex-wrap gap-x-1">
      {tabs.map((tab) => (
        <li key={tab.text}>
          <Link
            to={tab.to}
            {...(tab.params === undefined ? {} : { params: tab.params })}
            activeOptions={{ exact: tab.exact ?? true, includeSearch: false }}
            className="-mb-px inline-flex min-h-10 items-center border-b-2 px-3 font-medium whitespace-nowrap -outline-offset-2"
            activeProps={{ className: 'border-accent text-accent' }}
            inactiveProps={{ className: 'border-transparent text-muted hover:text-ink' }}
          >
            {tab.text}
          </Link>
        </li>
      ))}
    </ul>
  </nav>
);
