// Medians and a small text table; nothing else.

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === undefined) throw new Error('no values to take a median of');
  return middle;
};

/** The value below which this share of them is; 1: the largest. */
export const atShare = (values: readonly number[], share: number): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const found = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  if (found === undefined) throw new Error('no values');
  return found;
};

export const table = (rows: readonly (readonly string[])[]): string => {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join('  '),
    )
    .join('\n');
};

export const microseconds = (nanoseconds: number): string => `${(nanoseconds / 1000).toFixed(1)} µs`;
export const thousands = (perSecond: number): string => `${(perSecond / 1000).toFixed(1)}k/s`;
export const ratio = (value: number): string => `${value.toFixed(2)} x`;
