// What is known of a request while its checks pass, and the record that the request log gets of it.

import type { IncomingMessage } from 'node:http';
import { diagnosticsOperation, probeMarkHeader } from '../../base/probe-mark.ts';
import type { XksDirectory, XksEndpointView, XksRequestRecord } from '../../ports/xks-directory.ts';
import type { ParsedBody } from './key-operations.ts';
import type { XksPath } from './xks-request.ts';

/** What the request log will say; filled in as the checks pass. */
export interface Trace {
  path: XksPath | null;
  endpoint: XksEndpointView | null;
  credentialId: string | null;
  parsed: ParsedBody | null;
  /** The addon was asked to do something with the key. */
  usesKey: boolean;
  reason: string | null;
  readDone: number;
  authDone: number;
}

export const createTrace = (): Trace => ({
  path: null,
  endpoint: null,
  credentialId: null,
  parsed: null,
  usesKey: false,
  reason: null,
  readDone: 0,
  authDone: 0,
});

export interface RecorderOptions {
  readonly directory: XksDirectory;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  /** Whether the mark of a request to this path says that the service itself has sent it. */
  readonly isOwnProbe?: (path: string, mark: string) => boolean;
  /**
   * Told of each request when its answer is handed to the connection. Absent: it is not observed.
   */
  readonly describe?: ((incoming: IncomingMessage, entry: XksRequestRecord) => void) | undefined;
}

/** Records a request: `status` and `errorName` are those of its answer. */
export type RecordRequest = (
  incoming: IncomingMessage,
  trace: Trace,
  started: number,
  requestId: string,
  status: number,
  errorName: string | null,
  peer: string | null,
) => void;

/**
 * PostgreSQL has no U+0000 in a text: one record with it would cost those that are written with it.
 */
const storable = (text: string | undefined): string | null => text?.replaceAll('\0', '\ufffd') ?? null;

export const createRecorder = (options: RecorderOptions): RecordRequest => {
  const { directory, clock, describe } = options;

  /** Asked only where it may be so: nothing of this costs a request of the cloud. */
  const isOwnProbe = ({ headers, url = '' }: IncomingMessage, { parsed }: Trace): boolean => {
    if (parsed !== null && parsed.requestMetadata?.kmsOperation !== diagnosticsOperation) return false;
    const mark = headers[probeMarkHeader];
    return typeof mark === 'string' && options.isOwnProbe?.(url, mark) === true;
  };

  return (incoming, trace, started, requestId, status, errorName, peer) => {
    const now = performance.now();
    const metadata = trace.parsed?.requestMetadata;
    const readDone = trace.readDone || now;
    const authDone = trace.authDone || readDone;
    const at = clock();
    const isOwn = isOwnProbe(incoming, trace);
    if (trace.usesKey && status === 200 && trace.endpoint !== null && !isOwn) trace.endpoint.use.at = at;
    const entry: XksRequestRecord = {
      at,
      requestId,
      endpointId: trace.endpoint?.id ?? null,
      operation: trace.path?.operation ?? 'unknown',
      kmsOperation: storable(metadata?.kmsOperation),
      kmsRequestId: storable(metadata?.kmsRequestId),
      principal: storable(metadata?.awsPrincipalArn),
      kmsKeyArn: storable(metadata?.kmsKeyArn),
      awsSourceVpc: storable(metadata?.awsSourceVpc),
      awsSourceVpce: storable(metadata?.awsSourceVpce),
      kmsViaService: storable(metadata?.kmsViaService),
      externalKeyId: trace.path?.externalKeyId ?? null,
      credentialId: trace.credentialId,
      status,
      errorName,
      durationMs: now - started,
      phases: { readMs: readDone - started, authMs: authDone - readDone, cryptoMs: now - authDone },
      reason: trace.reason,
      peer,
    };
    directory.record(entry, isOwn);
    describe?.(incoming, entry);
  };
};
