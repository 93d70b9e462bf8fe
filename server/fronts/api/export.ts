// Logs as files: the request log as NDJSON, or CSV (RFC 4180) for spreadsheets, and the audit log. Texts in the former come
// from whoever called the proxy, so a cell that a spreadsheet would run as a formula is marked as text. Pages are asked for as
// the connection takes them: memory stays bounded, however long the log is.

import type { RequestPages } from '../../operations/index.ts';
import type { EndpointRequest } from '../contract/api/requests.ts';
import { representRequest } from './represent.ts';

export type ExportFormat = 'ndjson' | 'csv';

/** A file that is sent while it is read. */
export class StreamedFile {
  readonly contentType: string;
  readonly name: string;
  readonly body: ReadableStream<Uint8Array>;

  constructor(contentType: string, name: string, body: ReadableStream<Uint8Array>) {
    this.contentType = contentType;
    this.name = name;
    this.body = body;
  }
}

const columns: readonly (readonly [heading: string, read: (row: EndpointRequest) => string | number | null])[] = [
  ['at', (row) => row.at],
  ['sequence', (row) => row.sequence],
  ['requestId', (row) => row.requestId],
  ['endpointId', (row) => row.endpointId],
  ['operation', (row) => row.operation],
  ['kmsOperation', (row) => row.kmsOperation],
  ['kmsRequestId', (row) => row.kmsRequestId],
  ['principal', (row) => row.principal],
  ['kmsKeyArn', (row) => row.kmsKeyArn],
  ['externalKeyId', (row) => row.externalKeyId],
  ['credentialId', (row) => row.credentialId],
  ['status', (row) => row.status],
  ['errorName', (row) => row.errorName],
  ['durationMs', (row) => row.durationMs],
  ['readMs', (row) => row.phases.readMs],
  ['authMs', (row) => row.phases.authMs],
  ['cryptoMs', (row) => row.phases.cryptoMs],
  ['reason', (row) => row.reason],
  ['peer', (row) => row.peer],
];

/** One cell. What begins like a formula (also after blanks, which spreadsheets skip) gets a ' in front. */
export const csvCell = (value: string | number | null): string => {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = /^\s*[=+\-@\t\r|%]/.test(value) ? `'${value}` : value;
  return /[",\r\n;]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
};
const csvLine = (cells: readonly (string | number | null)[]): string => `${cells.map(csvCell).join(',')}\r\n`;

const formats: Readonly<
  Record<
    ExportFormat,
    { readonly type: string; readonly head: string; readonly line: (row: EndpointRequest) => string }
  >
> = {
  ndjson: { type: 'application/x-ndjson', head: '', line: (row) => `${JSON.stringify(row)}\n` },
  csv: {
    type: 'text/csv; charset=utf-8; header=present',
    head: csvLine(columns.map(([heading]) => heading)),
    line: (row) => csvLine(columns.map(([, read]) => read(row))),
  },
};

/** A file of the texts that are read, page by page. */
const streamed = <T>(
  { type, head, name }: { readonly type: string; readonly head: string; readonly name: string },
  pages: AsyncIterable<readonly T[]>,
  line: (row: T) => string,
): StreamedFile => {
  const iterator = pages[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let begun = false;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (!begun && head !== '') controller.enqueue(encoder.encode(head));
        begun = true;
        const { value, done } = await iterator.next();
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value.map(line).join('')));
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    // Nothing is read ahead of what the connection takes.
    { highWaterMark: 0 },
  );
  return new StreamedFile(type, name, body);
};

export const exportRequests = (pages: RequestPages, format: ExportFormat): StreamedFile => {
  const { type, head, line } = formats[format];
  return streamed({ type, head, name: `dke-requests.${format}` }, pages, (row) => line(representRequest(row)));
};

/** Lines that are JSON already. */
export const exportLines = (pages: AsyncIterable<readonly string[]>, name: string): StreamedFile =>
  streamed({ type: formats.ndjson.type, head: '', name }, pages, (line) => `${line}\n`);
