// Lists as files: the request log and the inventory of keys as NDJSON, or CSV (RFC 4180) for spreadsheets, and the audit log. Some texts
// come from outside, such as those of callers of the proxy, so a cell that a spreadsheet would run as a formula is marked as text. Pages
// are asked for as the connection takes them: memory stays bounded, however long the list is.

import { csvLine } from '../../base/csv.ts';
import type { Key } from '../../domain/key.ts';
import type { RequestPages } from '../../operations/index.ts';
import type { Key as ApiKey } from '../contract/api/keys.ts';
import type { EndpointRequest } from '../contract/api/requests.ts';
import { representKey, representRequest } from './represent.ts';

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

/** Bytes as a connection takes them. */
export const streamOf = (pieces: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> => {
  const iterator = pieces[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value, done } = await iterator.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    // Nothing is read ahead of what the connection takes.
    { highWaterMark: 0 },
  );
};

type Columns<T> = readonly (readonly [heading: string, read: (row: T) => string | number | null])[];

const requestColumns: Columns<EndpointRequest> = [
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

const keyColumns: Columns<ApiKey> = [
  ['tenantId', (row) => row.tenantId],
  ['id', (row) => row.id],
  ['name', (row) => row.name],
  ['kind', (row) => row.kind],
  ['state', (row) => row.state],
  ['type', (row) => row.type],
  ['usages', (row) => row.usages.join(' ')],
  ['currentVersion', (row) => row.currentVersion],
  ['vaultId', (row) => row.vaultId],
  ['applicationId', (row) => row.applicationId],
  ['tags', (row) => row.tags.join(' ')],
  ['createdAt', (row) => row.createdAt],
  ['disabledAt', (row) => row.disabledAt],
  ['deletedAt', (row) => row.deletedAt],
  ['reimportedAt', (row) => row.reimportedAt],
  ['destroyedAt', (row) => row.destroyedAt],
  ['unrecoverableAt', (row) => row.unrecoverableAt],
  ['firstUsedAt', (row) => row.firstUsedAt],
  ['lastUsedAt', (row) => row.lastUsedAt],
  ['integrity', (row) => row.integrity],
];

const ndjson = 'application/x-ndjson';
const csv = 'text/csv; charset=utf-8; header=present';

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

/** A list as a file of this format. */
const exportAs = <T, Row>(
  format: ExportFormat,
  list: string,
  pages: AsyncIterable<readonly T[]>,
  represent: (item: T) => Row,
  columns: Columns<Row>,
): StreamedFile => {
  const name = `dke-${list}.${format}`;
  if (format === 'ndjson')
    return streamed({ type: ndjson, head: '', name }, pages, (item) => `${JSON.stringify(represent(item))}\n`);
  const head = csvLine(columns.map(([heading]) => heading));
  return streamed({ type: csv, head, name }, pages, (item) => {
    const row = represent(item);
    return csvLine(columns.map(([, read]) => read(row)));
  });
};

export const exportRequests = (pages: RequestPages, format: ExportFormat): StreamedFile =>
  exportAs(format, 'requests', pages, representRequest, requestColumns);

export const exportKeys = (pages: AsyncIterable<readonly Key[]>, format: ExportFormat): StreamedFile =>
  exportAs(format, 'keys', pages, representKey, keyColumns);

/** Lines that are JSON already. */
export const exportLines = (pages: AsyncIterable<readonly string[]>, name: string): StreamedFile =>
  streamed({ type: ndjson, head: '', name }, pages, (line) => `${line}\n`);
