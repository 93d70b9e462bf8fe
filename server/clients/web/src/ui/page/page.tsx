// The frame of a page: breadcrumb, title, description and actions; and the panels below.

import { Link, type LinkProps } from '@tanstack/react-router';
import { type ReactNode, useEffect } from 'react';
import { Icon } from './icon.tsx';
import { Time } from './time.tsx';

export interface Crumb {
  readonly text: string;
  readonly to: NonNullable<LinkProps['to']>;
}

export const Page = ({
  title,
  description,
  crumbs = [],
  badge,
  actions,
  children,
}: {
  title: string;
  description?: ReactNode;
  crumbs?: readonly Crumb[];
  badge?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) => {
  useEffect(() => {
    document.title = `${title} · DKE console`;
  }, [title]);
  return (
    <div className="mx-auto w-full max-w-7xl px-4 py-6 sm:px-8 sm:py-8">
      {crumbs.length > 0 && (
        <nav aria-label="Breadcrumb" className="mb-2">
          <ol className="flex flex-wrap items-center gap-1 text-muted">
            {crumbs.map((crumb) => (
              <li key={crumb.text} className="flex items-center gap-1">
                <Link to={crumb.to} className="rounded hover:text-ink hover:underline">
                  {crumb.text}
                </Link>
                <Icon name="chevron" className="size-3.5" />
              </li>
            ))}
          </ol>
        </nav>
      )}
      <header className="mb-6 flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <h1
              tabIndex={-1}
              className="text-2xl leading-tight font-semibold tracking-tight wrap-anywhere outline-none"
            >
              {title}
            </h1>
            {badge}
          </div>
          {description !== undefined && <p className="mt-1 max-w-prose text-muted">{description}</p>}
        </div>
        {actions !== undefined && <div className="flex flex-wrap gap-2">{actions}</div>}
      </header>
      <div className="space-y-6">{children}</div>
    </div>
  );
};

export const Panel = ({
  title,
  description,
  actions,
  flush = false,
  asOf,
  children,
}: {
  title?: string;
  description?: ReactNode;
  actions?: ReactNode;
  /** The content reaches the panel's edges (tables). */
  flush?: boolean;
  /**
   * When the content was read last, in milliseconds, where it is read again and again; 0: never.
   */
  asOf?: number;
  children: ReactNode;
}) => (
  <section className="overflow-clip rounded-xl border border-line bg-surface shadow-raised">
    {title !== undefined && (
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2 border-b border-line px-4 py-3">
        <div className="min-w-0 flex-1 basis-64">
          <h2 className="font-semibold">{title}</h2>
          {description !== undefined && <p className="text-muted">{description}</p>}
        </div>
        {asOf !== undefined && asOf > 0 && (
          <p className="text-xs text-muted">
            As of <Time value={new Date(asOf).toISOString()} seconds />
          </p>
        )}
        {actions !== undefined && <div className="flex flex-wrap gap-2">{actions}</div>}
      </div>
    )}
    <div className={flush ? '' : 'p-4'}>{children}</div>
  </section>
);

/** Facts as name and value. */
export const Facts = ({ items }: { items: readonly (readonly [name: string, value: ReactNode])[] }) => (
  <dl className="grid gap-x-8 gap-y-3 sm:grid-cols-2 lg:grid-cols-3">
    {items.map(([name, value]) => (
      <div key={name} className="min-w-0">
        <dt className="text-xs text-muted">{name}</dt>
        <dd className="mt-0.5 min-w-0 break-words">{value}</dd>
      </div>
    ))}
  </dl>
);
