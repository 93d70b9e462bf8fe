// Lists as files: the request log and the inventory of keys as NDJSON, or CSV (RFC 4180) for
// spreadsheets, and the audit log. Some texts come from outside, such as those of callers of the
// proxy, so a cell that a spreadsheet would run as a formula is marked as text. Pages are asked for
// as the connection takes them: memory stays bounded, however long the list is.

import { csvLine } from '../../base/csv.ts';
import type { Key as ApiKey } from '../../contract/api/keys-routes.ts';
import type { EndpointRequest } from '../../contract/api/requests-routes.ts';
import type { ShownKey } from '../../domain/key.ts';
import type { RequestPages } from '../../operations/index.ts';
import { always, type StillAllowed } from './credential-end.ts';
import { representKey, representRequest } from './represent.ts';

export type ExportFormat = 'ndjson' | 'csv';

/**
 * A reader that takes nothing for this long is not waited for, nor one that takes less than this in
 * the long run.
 */
const stallMs = 60_000;
const leastBytesPerMs = 16;

/** A file that is sent while it is read, as the connection takes it. */
export class StreamedFile {
  readonly contentType: string;
  readonly name: string;
  readonly body: ReadableStream<Uint8Array>;
  readonly #iterator: AsyncIterator<Uint8Array>;
  readonly #ended: (() => void)[] = [];
  #isEnded = false;
  #stalled: NodeJS.Timeout | undefined;
  #bytes = 0;
  /** How long its reader was waited for, and since when it is. */
  #waitedMs = 0;
  #waitsSince = 0;
  #stillAllowed: StillAllowed = always;

  constructor(contentType: string, name: string, pieces: AsyncIterable<Uint8Array>) {
    this.contentType = contentType;
    this.name = name;
    this.#iterator = pieces[Symbol.asyncIterator]();
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => this.#await(controller),
        pull: async (controller) => {
          clearTimeout(this.#stalled);
          this.#waitedMs += performance.now() - this.#waitsSince;
          try {
            await this.#stillAllowed();
            const { value, done } = await this.#iterator.next();
            // A piece may be long in coming.
            await this.#stillAllowed();
            if (this.#isEnded) return;
            if (done !== true) {
              controller.enqueue(value);
              this.#bytes += value.byteLength;
              this.#await(controller);
              return;
            }
            controller.close();
          } catch (error) {
            controller.error(error);
          }
          this.stop();
        },
        cancel: () => this.stop(),
      },
      // Nothing is read ahead of what the connection takes.
      { highWaterMark: 0 },
    );
  }

  /** Throws once the caller may not have it: a credential that has ended ends its files. */
  onlyWhile(stillAllowed: StillAllowed): void {
    this.#stillAllowed = stillAllowed;
  }

  /** Calls `done` when the file has ended, also when it was not read to its end. */
  whenEnded(done: () => void): void {
    if (this.#isEnded) done();
    else this.#ended.push(done);
  }

  /** Ends it, read or not. */
  stop(): void {
    clearTimeout(this.#stalled);
    if (this.#isEnded) return;
    this.#isEnded = true;
    // Its answer is not awaited: a file or a page that could not be closed ends nothing else.
    void this.#iterator.return?.().catch(() => undefined);
    for (const done of this.#ended) done();
  }

  #await(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#waitsSince = performance.now();
    const left = stallMs + this.#bytes / leastBytesPerMs - this.#waitedMs;
    this.#stalled = setTimeout(
      () => {
        this.stop();
        controller.error(new Error('the reader of a file takes nothing, or too little'));
      },
      Math.min(stallMs, left),
    );
    this.#stalled.unref();
  }
}

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
  // Columns that came later are at the end: some readers go by the position.
  ['awsSourceVpc', (row) => row.awsSourceVpc],
  ['awsSourceVpce', (row) => row.awsSourceVpce],
  ['kmsViaService', (row) => row.kmsViaService],
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
  ['effectiveState', (row) => row.effectiveState],
];

const ndjson = 'application/x-ndjson';
const csv = 'text/csv; charset=utf-8; header=present';

/** A file of the texts that are read, page by page. */
const streamed = <T>(
  { type, head, name }: { readonly type: string; readonly head: string; readonly name: string },
  pages: AsyncIterable<readonly T[]>,
  line: (row: T) => string,
): StreamedFile => {
  const encoder = new TextEncoder();
  async function* pieces(): AsyncGenerator<Uint8Array> {
    if (head !== '') yield encoder.encode(head);
    for await (const page of pages) yield encoder.encode(page.map(line).join(''));
  }
  return new StreamedFile(type, name, pieces());
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

export const exportKeys = (pages: AsyncIterable<readonly ShownKey[]>, format: ExportFormat): StreamedFile =>
  exportAs(format, 'keys', pages, representKey, keyColumns);

/** Lines that are JSON already. */
export const exportLines = (pages: AsyncIterable<readonly string[]>, name: string): StreamedFile =>
  streamed({ type: ndjson, head: '', name }, pages, (line) => `${line}\n`);
