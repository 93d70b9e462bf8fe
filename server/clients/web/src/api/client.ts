// One call of the console's API from the page: same origin, JSON only, the session's HttpOnly
// cookie sent by the browser. The server refuses a change whose Origin or Sec-Fetch-Site is foreign
// or whose body is not JSON; nothing secret is kept here. Failures become ApiProblem: a problem
// document (RFC 9457), or a substitute when no server answered.

import { heard, unheard } from './contact.ts';
import { isPresent } from './presence.ts';

export type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

/** A call that every form shows and `send` sends. */
export interface ApiCall {
  readonly method: Method;
  /** Absolute path, already encoded: `/api/keys/0199…`. */
  readonly path: string;
  readonly query?: Query | undefined;
  readonly body?: object | undefined;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface FieldFault {
  /** Path of the field in the request, joined by dots. */
  readonly path: string;
  readonly message: string;
}

/** Why a call did not succeed. `status` is 0 when no answer came. */
export class ApiProblem extends Error {
  override readonly name = 'ApiProblem';
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly hint: string | undefined;
  readonly permission: string | undefined;
  readonly requestId: string | undefined;
  readonly fields: readonly FieldFault[];

  constructor(init: {
    status: number;
    code: string;
    title: string;
    detail: string;
    hint?: string | undefined;
    permission?: string | undefined;
    requestId?: string | undefined;
    fields?: readonly FieldFault[] | undefined;
  }) {
    super(init.detail);
    this.status = init.status;
    this.code = init.code;
    this.title = init.title;
    this.hint = init.hint;
    this.permission = init.permission;
    this.requestId = init.requestId;
    this.fields = init.fields ?? [];
  }
}

export interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** For creates: a repeat with the same value gets the first answer again. */
  readonly idempotencyKey?: string | undefined;
  /** Entity tag read before; the server refuses the change when the resource has moved on. */
  readonly ifMatch?: string | undefined;
}

export interface Answer<T> {
  readonly data: T;
  readonly etag: string | undefined;
}

/** The tenant that calls name, when one was chosen (session/tenant.ts). */
let tenantOfCalls: () => string | null = () => null;
export const nameTenantBy = (read: () => string | null): void => {
  tenantOfCalls = read;
};

/**
 * Receives the nodes that have not confirmed a change yet (service/pending-nodes.tsx).
 */
let tellPending: (nodes: readonly string[], until: string | null) => void = () => undefined;
export const onPendingNodes = (tell: typeof tellPending): void => {
  tellPending = tell;
};

/**
 * Path and query string of a call. Empty and undefined query values are left out. A call that says
 * its tenant itself acts there; an empty one says: in none, so that every tenant is meant where a
 * call may.
 */
export const formatTarget = ({ path, query }: Pick<ApiCall, 'path' | 'query'>): string => {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== '') search.set(name, String(value));
  }
  const tenant = tenantOfCalls();
  if (
    tenant !== null &&
    query?.tenant === undefined &&
    /^\/api\/(?!(?:session|profile|roles|device-sign-in)\b)/.test(path)
  )
    search.set('tenant', tenant);
  const text = search.toString();
  return text === '' ? path : `${path}?${text}`;
};

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

const readFields = (value: unknown): readonly FieldFault[] =>
  Array.isArray(value)
    ? value.flatMap((entry: unknown) => {
        if (!isRecord(entry)) return [];
        const message = text(entry.message);
        return message === undefined ? [] : [{ path: text(entry.path) ?? '', message }];
      })
    : [];

const readProblem = async (response: Response): Promise<ApiProblem> => {
  const body: unknown = await response.json().catch(() => undefined);
  const document = isRecord(body) ? body : {};
  return new ApiProblem({
    status: response.status,
    code: text(document.code) ?? 'unexpected-answer',
    title: text(document.title) ?? `The server answered ${response.status}`,
    detail: text(document.detail) ?? text(document.title) ?? 'The server gave no details.',
    hint: text(document.hint),
    permission: text(document.permission),
    requestId: text(document.requestId) ?? response.headers.get('x-request-id') ?? undefined,
    fields: readFields(document.errors),
  });
};

const unreachable = (detail: string): ApiProblem =>
  new ApiProblem({
    status: 0,
    code: 'unreachable',
    title: 'The server cannot be reached',
    detail,
    hint: 'Check the network and that the service is running, then try again.',
  });
/**
 * A proxy speaks where the service does not: with a page of its own, never with a problem document.
 */
const isOfProxy = ({ status, headers }: Response): boolean =>
  status >= 502 && status <= 504 && !(headers.get('content-type') ?? '').includes('json');
const isAbort = (cause: unknown): boolean => cause instanceof DOMException && cause.name === 'AbortError';

/** Sends a call, or a file in place of its body; resolves when the service reports success. */
const ask = async (call: ApiCall, options: SendOptions, file?: Blob): Promise<Response> => {
  const headers = new Headers({ accept: 'application/json, application/problem+json' });
  if (call.method !== 'GET')
    headers.set('content-type', file === undefined ? 'application/json' : 'application/octet-stream');
  if (options.idempotencyKey !== undefined) headers.set('idempotency-key', options.idempotencyKey);
  if (options.ifMatch !== undefined) headers.set('if-match', options.ifMatch);
  if (!isPresent()) headers.set('x-dke-own-request', '1');
  let response: Response;
  try {
    response = await fetch(formatTarget(call), {
      method: call.method,
      headers,
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      ...(file === undefined ? (call.body === undefined ? {} : { body: JSON.stringify(call.body) }) : { body: file }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
  } catch (cause) {
    if (isAbort(cause)) throw cause;
    unheard();
    throw unreachable('The server did not respond.');
  }
  if (isOfProxy(response)) unheard();
  else heard();
  if (!response.ok) throw await readProblem(response);
  return response;
};

/** Reads an answer of JSON lines as it arrives. Resolves at its end. Throws ApiProblem. */
export const sendForLines = async <T>(
  call: ApiCall,
  tell: (line: T) => void,
  options: SendOptions = {},
): Promise<void> => {
  const { body } = await ask(call, options);
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read().catch((cause: unknown) => {
      throw isAbort(cause) ? cause : unreachable('The response was incomplete.');
    });
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) tell(JSON.parse(line) as T);
  }
};

/**
 * Sends a call and reads its JSON answer; an answer without content gives `undefined` as data.
 * Throws ApiProblem.
 */
export const sendForAnswer = async <T>(call: ApiCall, options: SendOptions = {}): Promise<Answer<T>> =>
  readAnswer<T>(await ask(call, options));

/** The answer's bytes. Throws ApiProblem. */
export const sendForBytes = async (call: ApiCall, options: SendOptions = {}): Promise<Uint8Array<ArrayBuffer>> => {
  const response = await ask(call, options);
  try {
    return new Uint8Array(await response.arrayBuffer());
  } catch {
    throw unreachable('The response was incomplete.');
  }
};

/** Sends a file as the body, as it is read from the disk. Throws ApiProblem. */
export const sendFile = async <T>(call: ApiCall, file: Blob, options: SendOptions = {}): Promise<T> =>
  (await readAnswer<T>(await ask(call, options, file))).data;

interface ApprovalAnswer {
  readonly id: string;
  readonly missing: number;
  readonly rules: readonly { readonly approvers: readonly string[] | null }[];
}

const readAnswer = async <T>(response: Response): Promise<Answer<T>> => {
  const pending = response.headers.get('x-dke-pending-nodes') ?? '';
  const until = response.headers.get('x-dke-pending-until') ?? 'never';
  if (pending !== '') tellPending(pending.split(',').map(decodeURIComponent), until === 'never' ? null : until);
  const etag = response.headers.get('etag') ?? undefined;
  if (response.status === 202) {
    const { id, missing, rules } = (await response.json()) as ApprovalAnswer;
    const able = new Set(rules.flatMap(({ approvers }) => approvers ?? [])).size;
    const who = missing === 1 ? 'Another person' : `${missing} other people`;
    throw new ApiProblem({
      status: 202,
      code: 'approval-pending',
      title: 'Approval requested',
      detail: `${who} with the role key-approver or administrator must approve it${able === 0 ? '' : `: ${able} can`}.`,
      hint: 'They find the request on the page Approvals. You cannot approve it yourself.',
      requestId: id,
    });
  }
  if (response.status === 204) return { data: undefined as T, etag };
  try {
    return { data: (await response.json()) as T, etag };
  } catch {
    throw new ApiProblem({
      status: response.status,
      code: 'unexpected-answer',
      title: 'The response is not JSON',
      detail: 'A proxy between this page and the service may have changed the response.',
    });
  }
};

/** Like `sendForAnswer`, for callers that need no entity tag. */
export const send = async <T>(call: ApiCall, options: SendOptions = {}): Promise<T> =>
  (await sendForAnswer<T>(call, options)).data;

/**
 * How long a sign of life may take, in milliseconds: a network that swallows packets fails no call.
 */
const patienceMs = 5_000;

/** Asks for a sign of life alone: needs no session, and renews none. */
export const listenForService = async (): Promise<void> => {
  await ask({ method: 'GET', path: '/health/live' }, { signal: AbortSignal.timeout(patienceMs) }).catch(
    () => undefined,
  );
};
