// Moments in the zone that was chosen, the exact UTC moment on hover, both from one RFC 3339 text.

import { type ReactNode, useSyncExternalStore } from 'react';
import { usePrintedAt } from '../../audit/printing.ts';
import { useExactTimes, useZone } from '../fields/zone.tsx';

/** The language of the console: dates of another one beside its words are hard to read. */
export const language = 'en-GB';
/** With its zone: a time without one is read as another moment elsewhere. */
const formatOf = (seconds: boolean) => {
  const shape = {
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    ...(seconds ? { second: '2-digit' as const } : {}),
    timeZoneName: 'short',
  } as const;
  return {
    local: new Intl.DateTimeFormat(language, shape),
    utc: new Intl.DateTimeFormat(language, { ...shape, timeZone: 'UTC' }),
  };
};
const absolute = formatOf(false);
const absoluteSeconds = formatOf(true);
const relative = new Intl.RelativeTimeFormat(language, { numeric: 'auto' });

const tickMs = 30_000;
const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
const watchTicks = (watch: () => void): (() => void) => {
  watchers.add(watch);
  timer ??= setInterval(() => {
    for (const each of watchers) each();
  }, tickMs);
  return () => {
    watchers.delete(watch);
    if (watchers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
};
/** What says "3 minutes ago" is drawn again while that changes. */
const useTicks = (): void => void useSyncExternalStore(watchTicks, () => Math.floor(Date.now() / tickMs));

const steps: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
];

/** "3 minutes ago", "in 30 days": for times whose distance matters more than their date. */
export const formatDistance = (moment: Date, now: Date): string => {
  const distance = moment.getTime() - now.getTime();
  for (const [unit, size] of steps) {
    if (Math.abs(distance) >= size) return relative.format(Math.trunc(distance / size), unit);
  }
  return 'just now';
};

const formatUtc = (moment: Date): string =>
  `${moment
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, '')} UTC`;

export const Time = ({
  value,
  distance = false,
  seconds = false,
  absent = 'never',
}: {
  value: string | null | undefined;
  /** Show how long ago, with the local time on hover too. */
  distance?: boolean;
  /** Show seconds too, where the order of events matters. */
  seconds?: boolean;
  /** What a missing moment means here. */
  absent?: string;
}) => {
  const zone = useZone();
  // A distance says nothing on paper, and not enough to who has asked for exact times.
  const isExact = useExactTimes();
  const isDistance = usePrintedAt() === null && distance && !isExact;
  useTicks();
  if (value === null || value === undefined) return <span className="text-muted">{absent}</span>;
  const moment = new Date(value);
  if (Number.isNaN(moment.getTime())) return <span>{value}</span>;
  const local = (seconds ? absoluteSeconds : absolute)[zone].format(moment);
  return (
    <time
      dateTime={value}
      title={isDistance ? `${local} (${formatUtc(moment)})` : formatUtc(moment)}
      className="tabular-nums md:whitespace-nowrap"
    >
      {isDistance ? formatDistance(moment, new Date()) : local}
    </time>
  );
};

/**
 * A moment that the service names in a text stands there as RFC 3339; a person reads it in their
 * own time.
 */
export const withOwnTime = (text: string): ReactNode =>
  text
    .split(/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/)
    .map((part, at) => (at % 2 === 0 ? part : <Time key={part} value={part} seconds />));
