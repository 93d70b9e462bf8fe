// CSV (RFC 4180) for spreadsheets. Texts may come from outside: one that a spreadsheet would run as
// a formula is marked as text.

/**
 * One cell. What begins like a formula (also after blanks, which spreadsheets skip) gets a ' in
 * front.
 */
export const csvCell = (value: string | number | null): string => {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = /^\s*[=+\-@\t\r|%]/.test(value) ? `'${value}` : value;
  return /[",\r\n;]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
};

export const csvLine = (cells: readonly (string | number | null)[]): string => `${cells.map(csvCell).join(',')}\r\n`;
