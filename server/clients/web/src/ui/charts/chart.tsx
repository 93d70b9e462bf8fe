// A chart over time, lines or bars, drawn by uPlot in the page's own colours. Its label describes
// it in words for people who cannot see it; the page shows the important numbers as text.

import { useEffect, useRef, useSyncExternalStore } from 'react';
import uPlot from 'uplot';
import { useTheme } from '../../session/theme.ts';
import { isSparse, lonely } from './course.ts';

export interface ChartLine {
  readonly name: string;
  readonly colour: 'accent' | 'warn' | 'danger' | 'muted';
  /** One value for each moment; null: none. */
  readonly values: readonly (number | null)[];
  readonly fill?: boolean;
}

const dark = globalThis.matchMedia('(prefers-color-scheme: dark)');
const watchScheme = (listener: () => void): (() => void) => {
  dark.addEventListener('change', listener);
  return () => dark.removeEventListener('change', listener);
};

/**
 * A colour of the palette as the browser computes it now: a canvas does not support CSS variables.
 */
const colourOf = (probe: HTMLElement, name: string): string => {
  probe.style.color = `var(--color-${name})`;
  return getComputedStyle(probe).color;
};

export const Chart = ({
  label,
  at,
  lines,
  unit,
  marks = [],
  height = 190,
  onZoom,
}: {
  label: string;
  /** Seconds since the epoch. */
  at: readonly number[];
  lines: readonly ChartLine[];
  unit: string;
  /** Values drawn as horizontal lines when they are in the visible range. */
  marks?: readonly number[];
  height?: number;
  /** Told which part of the time was marked with the pointer: seconds since the epoch. */
  onZoom?: (from: number, to: number) => void;
}) => {
  const zoomed = useRef(onZoom);
  zoomed.current = onZoom;
  const frame = useRef<HTMLDivElement>(null);
  const probe = useRef<HTMLSpanElement>(null);
  const theme = useTheme();
  const isDark = useSyncExternalStore(watchScheme, () => dark.matches);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the theme decides what the colours are
  useEffect(() => {
    const [element, colours] = [frame.current, probe.current];
    if (element === null || colours === null) return undefined;
    const colour = (name: string): string => colourOf(colours, name);
    const [muted, line, danger] = [colour('muted'), colour('line'), colour('danger')];
    const axis: uPlot.Axis = {
      stroke: muted,
      grid: { stroke: line, width: 1 },
      ticks: { stroke: line, width: 1 },
      font: '11px system-ui, sans-serif',
    };
    // A line between few moments says more than was measured.
    const bars = isSparse(lines) ? uPlot.paths.bars?.({ size: [0.6, 24] }) : undefined;
    const last = lines.reduce(
      (most, { values }) =>
        Math.max(
          most,
          values.findLastIndex((value) => value !== null),
        ),
      -1,
    );
    const showLast = (shown: uPlot): void => {
      if (last >= 0 && (shown.cursor.idx ?? null) === null) shown.setLegend({ idx: last });
    };
    const chart = new uPlot(
      {
        width: Math.max(element.clientWidth, 200),
        height,
        cursor: { y: false, points: { size: 6 }, drag: { x: true, y: false, setScale: false } },
        legend: { show: true, live: true },
        scales: { y: { range: (_, __, max) => [0, Math.max(max ?? 0, 1) * 1.1] } },
        axes: [axis, { ...axis, size: 52, values: (_, ticks) => ticks.map((tick) => `${tick} ${unit}`.trim()) }],
        series: [
          { value: (_, seconds) => (seconds === null ? '' : new Date(seconds * 1000).toLocaleTimeString('en-GB')) },
          ...lines.map(
            ({ name, colour: of, fill, values }): uPlot.Series => ({
              label: name,
              stroke: colour(of),
              width: 1.5,
              spanGaps: false,
              ...(bars === undefined ? {} : { paths: bars }),
              points: { show: bars === undefined, size: 4, filter: () => lonely(values) },
              ...(fill === true || bars !== undefined ? { fill: colour(`${of}-soft`) } : {}),
              value: (_, value) => (value === null ? '–' : `${Number(value.toFixed(1))} ${unit}`.trim()),
            }),
          ),
        ],
        hooks: {
          ready: [showLast],
          setCursor: [showLast],
          setSelect: [
            (shown: uPlot) => {
              const { left, width } = shown.select;
              if (width < 8) return;
              zoomed.current?.(shown.posToVal(left, 'x'), shown.posToVal(left + width, 'x'));
            },
          ],
          draw: [
            ({ ctx, bbox, scales, valToPos }: uPlot) => {
              ctx.save();
              ctx.strokeStyle = danger;
              ctx.setLineDash([4, 4]);
              for (const mark of marks) {
                if (mark > (scales.y?.max ?? 0)) continue;
                const y = Math.round(valToPos(mark, 'y', true));
                ctx.beginPath();
                ctx.moveTo(bbox.left, y);
                ctx.lineTo(bbox.left + bbox.width, y);
                ctx.stroke();
              }
              ctx.restore();
            },
          ],
        },
      },
      [[...at], ...lines.map(({ values }) => [...values])],
      element,
    );
    const observer = new ResizeObserver(() => chart.setSize({ width: Math.max(element.clientWidth, 200), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [at, lines, unit, marks, height, theme, isDark]);
  return (
    <figure role="img" aria-label={label} className="min-w-0 text-xs">
      <span ref={probe} hidden />
      <div ref={frame} className="min-w-0 overflow-hidden" />
    </figure>
  );
};
