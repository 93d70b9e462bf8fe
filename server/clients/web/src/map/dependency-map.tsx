// A map of dependencies: columns of things and the lines between them, with a link on each thing
// that has a page, so that the Tab key leads through it. Below it, the same as a list: for screen
// readers, narrow screens and paper.

import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Graph, Thing, ThingKind, ThingPage } from './graph.ts';

const kindNames: Readonly<Record<ThingKind, string>> = {
  vault: 'Vault',
  key: 'Key',
  endpoint: 'Endpoint',
  group: 'Group',
  application: 'Application',
  host: 'Host',
  snapshot: 'Snapshot',
  copy: 'Copy',
  more: '',
};

const [width, height, gapX, gapY, headHeight, margin] = [190, 46, 64, 12, 26, 4] as const;
const mostCharacters = 25;

/** The end of a name tells names apart as often as its beginning. */
export const shortened = (name: string, most = mostCharacters): string => {
  if (name.length <= most) return name;
  const end = Math.floor((most - 1) / 2);
  return `${name.slice(0, most - 1 - end)}…${name.slice(-end)}`;
};

export const PageLink = ({
  page,
  className = 'link',
  children,
}: {
  page: ThingPage | undefined;
  className?: string;
  children: ReactNode;
}) => {
  if (page === undefined) return children;
  return 'id' in page ? (
    <Link to={page.to} params={{ id: page.id }} className={className}>
      {children}
    </Link>
  ) : (
    <Link to={page.to} className={className}>
      {children}
    </Link>
  );
};

const Box = ({ thing, x, y }: { thing: Thing; x: number; y: number }) => (
  <g transform={`translate(${x} ${y})`}>
    <title>{[kindNames[thing.kind], thing.name, thing.note].filter(Boolean).join(', ')}</title>
    <rect
      width={width}
      height={height}
      rx={8}
      className={thing.self === true ? 'fill-accent-soft stroke-accent' : 'fill-surface stroke-line-strong'}
      strokeWidth={thing.self === true ? 2 : 1}
      strokeDasharray={thing.kind === 'more' ? '4 3' : undefined}
    />
    <text x={10} y={thing.kind === 'more' ? 28 : 19} className="fill-ink text-xs font-medium">
      {shortened(thing.name)}
    </text>
    {thing.kind !== 'more' && (
      <text x={10} y={36} className="fill-muted text-[0.6875rem]">
        {shortened([kindNames[thing.kind], thing.note].filter(Boolean).join(', '), 30)}
      </text>
    )}
  </g>
);

const Picture = ({ label, graph: { columns, edges } }: { label: string; graph: Graph }) => {
  const tallest = Math.max(...columns.map(({ things }) => things.length));
  const bodyHeight = tallest * height + (tallest - 1) * gapY;
  const places = new Map<string, { readonly x: number; readonly y: number }>();
  for (const [at, { things }] of columns.entries()) {
    const own = things.length * height + (things.length - 1) * gapY;
    for (const [row, { id }] of things.entries())
      places.set(id, {
        x: margin + at * (width + gapX),
        y: margin + headHeight + (bodyHeight - own) / 2 + row * (height + gapY),
      });
  }
  const whole = {
    width: 2 * margin + columns.length * width + (columns.length - 1) * gapX,
    height: 2 * margin + headHeight + bodyHeight,
  };
  return (
    <div className="overflow-x-auto max-sm:hidden print:hidden">
      {/* biome-ignore lint/a11y/useSemanticElements: SVG has no element of a group of links with a name */}
      <svg {...whole} role="group" aria-label={label} className="min-w-max">
        {columns.map(({ title }, at) => (
          <text key={title} x={margin + at * (width + gapX)} y={margin + 12} className="fill-muted text-xs">
            {title}
          </text>
        ))}
        {edges.map(([from, to]) => {
          const [a, b] = [places.get(from), places.get(to)];
          if (a === undefined || b === undefined) return null;
          const [x1, y1, x2, y2] = [a.x + width, a.y + height / 2, b.x, b.y + height / 2];
          const bend = Math.max(gapX / 2, (x2 - x1) / 2);
          return (
            <path
              key={`${from} ${to}`}
              d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`}
              className="fill-none stroke-line-strong"
              strokeWidth={1.25}
            />
          );
        })}
        {columns.flatMap(({ things }) =>
          things.map((thing) => {
            const { x, y } = places.get(thing.id) ?? { x: 0, y: 0 };
            return (
              <PageLink
                key={thing.id}
                page={thing.self === true ? undefined : thing.page}
                className="[&:focus-visible_rect]:stroke-accent [&:hover_rect]:fill-hover"
              >
                <Box thing={thing} x={x} y={y} />
              </PageLink>
            );
          }),
        )}
      </svg>
    </div>
  );
};

const List = ({ graph: { columns, edges } }: { graph: Graph }) => {
  const names = new Map(columns.flatMap(({ things }) => things.map((thing) => [thing.id, thing] as const)));
  const leadsTo = (id: string): string =>
    edges.flatMap(([from, to]) => (from === id ? [names.get(to)?.name ?? ''] : [])).join(', ');
  return (
    <dl className="grid gap-x-8 gap-y-4 sm:grid-cols-2 lg:grid-cols-3">
      {columns.map(({ title, things }) => (
        <div key={title} className="min-w-0">
          <dt className="text-xs text-muted">{title}</dt>
          <dd>
            <ul className="space-y-1">
              {things.map((thing) => (
                <li key={thing.id} className="wrap-anywhere">
                  <PageLink page={thing.self === true ? undefined : thing.page}>
                    {thing.self === true ? <strong>{thing.name}</strong> : thing.name}
                  </PageLink>
                  {thing.note !== undefined && <span className="text-muted"> ({thing.note})</span>}
                  {leadsTo(thing.id) !== '' && <span className="text-muted"> → {leadsTo(thing.id)}</span>}
                </li>
              ))}
            </ul>
          </dd>
        </div>
      ))}
    </dl>
  );
};

/** `label` names the picture and its list. */
const DependencyMap = ({ label, graph }: { label: string; graph: Graph }) => (
  <div className="space-y-4">
    <Picture label={label} graph={graph} />
    <details className="max-sm:hidden print:hidden">
      <summary className="cursor-pointer text-muted">As a list</summary>
      <div className="mt-3">
        <List graph={graph} />
      </div>
    </details>
    <div className="sm:hidden print:block">
      <List graph={graph} />
    </div>
  </div>
);
export default DependencyMap;
