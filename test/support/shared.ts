// Services that the tests of a file, or of a `describe`, find open: one for all of them, or a new
// one for each; and their API over HTTP.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { replacing } from './console-api.ts';
import { type OpenedService, openTestService } from './open-service.ts';

type Options = Parameters<typeof openTestService>[0];
/** What is in it is there as soon as the first test begins. */
const service = (
  options: Options,
  before: typeof beforeAll | typeof beforeEach,
  after: typeof afterAll | typeof afterEach,
): OpenedService => {
  const opened = {} as { -readonly [K in keyof OpenedService]: OpenedService[K] };
  before(async () => {
    Object.assign(opened, await openTestService(options));
  });
  after(() => opened.remove?.());
  return opened;
};

export const sharedService = (options?: Options): OpenedService => service(options, beforeAll, afterAll);
export const freshService = (options?: Options): OpenedService => service(options, beforeEach, afterEach);

/** Stops the service, unless it has stopped, and opens it again over what it has stored. */
export const restart = async (opened: OpenedService, options?: Options): Promise<void> => {
  await opened.stop();
  Object.assign(opened, await openTestService({ ...options, folder: opened.folder }));
};

export interface Answer {
  readonly status: number;
  readonly text: string;
}
export const sendTo = async (
  base: string,
  token: string,
  method: string,
  path: string,
  body?: object,
): Promise<Answer> => {
  const response = await fetch(`${base}${path}`, {
    method: method.toUpperCase(),
    headers: {
      ...replacing(method),
      authorization: `Bearer ${token}`,
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
};
/** What was answered; fails where that is a problem. */
export const mustTo = async <T>(...call: Parameters<typeof sendTo>): Promise<T> => {
  const [, , method, path] = call;
  const { status, text } = await sendTo(...call);
  if (status > 299) throw new Error(`${method} ${path}: ${status} ${text}`);
  return JSON.parse(text) as T;
};

/** Serves the console's API of an open service on the loopback, without TLS. */
export const listenFor = async ({
  service,
}: Pick<OpenedService, 'service'>): Promise<{ readonly base: string; close(): void }> => {
  const server = createServer((incoming, outgoing) => service.handle(incoming, outgoing));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
};
/** Where the API of a shared service listens: known as soon as the first test begins. */
export const sharedApi = (opened: OpenedService): { readonly base: string } => {
  const api = { base: '', close: (): void => undefined };
  beforeAll(async () => {
    Object.assign(api, await listenFor(opened));
  });
  afterAll(() => api.close());
  return api;
};
