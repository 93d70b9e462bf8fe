// A test's hands on the console API of a server process, and what an administrator does with it:
// register an application and write pkcs11.toml for a database host.
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import type { AuditRecord } from '../../server/contract/api/audit-routes.ts';
import type { MasterKey } from '../../server/contract/api/master-keys-routes.ts';
import type { IssuedAccessGuid, RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { requireDescribed } from './api-document.ts';
import { patient } from './patience.ts';

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

export interface ConsoleApi {
  /** One request; any status is an answer. */
  send(method: string, path: string, body?: object | string, headers?: Record<string, string>): Promise<ApiAnswer>;
  /** One request that must succeed. */
  call<T>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object): Promise<T>;
  audit(query: string): Promise<readonly AuditRecord[]>;
  masterKey(applicationId: string, label: string): Promise<MasterKey>;
}

interface Page<T> {
  readonly items: readonly T[];
}

/** For a test that replaces a resource, whatever its state. */
export const replacing = (method: string): Readonly<Record<string, string>> =>
  method.toUpperCase() === 'PUT' ? { 'if-match': '*' } : {};

export const openConsoleApi = (
  server: { readonly url: string; readonly caFile: string },
  token: string,
): ConsoleApi => {
  const ca = readFileSync(server.caFile);
  const send: ConsoleApi['send'] = (method, path, body, headers = {}) =>
    new Promise((resolve, reject) => {
      const sent = request(
        new URL(path, server.url),
        {
          method,
          ca,
          agent: false,
          headers: {
            authorization: `Bearer ${token}`,
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...headers,
          },
        },
        (answer) => {
          const parts: Buffer[] = [];
          answer.on('data', (part: Buffer) => parts.push(part)).on('error', reject);
          answer.on('end', () => {
            const status = answer.statusCode ?? 0;
            const text = Buffer.concat(parts).toString('utf8');
            try {
              requireDescribed({ method, path, status, contentType: answer.headers['content-type'], text });
              resolve({ status, headers: answer.headers, text });
            } catch (error) {
              reject(error);
            }
          });
        },
      );
      sent.on('error', reject);
      sent.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
    });
  const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const { status, text } = await send(method, path, body, replacing(method));
    if (status < 200 || status > 299) throw new Error(`${method} ${path} was answered with ${status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
  return {
    send,
    call,
    audit: async (query) => (await call<Page<AuditRecord>>('GET', `/api/audit?order=oldest&limit=1000&${query}`)).items,
    masterKey: async (applicationId, label) => {
      const path = `/api/tde/applications/${applicationId}/master-keys`;
      const key = (await call<Page<MasterKey>>('GET', path)).items.find(({ name }) => name === label);
      if (key === undefined) throw new Error(`no master key is called ${label}`);
      return key;
    },
  };
};

/**
 * Writes the offered pkcs11.toml with mode 600, and the lines that a test host needs next to it.
 */
export const writeProviderConfig = (
  path: string,
  { config }: Pick<IssuedAccessGuid, 'config'>,
  own: { readonly caFile: string; readonly logDir: string; readonly extra?: string },
): string => {
  const lines = `ca_file = ${JSON.stringify(own.caFile)}\nlog_dir = ${JSON.stringify(own.logDir)}\n${patient(own.extra)}`;
  writeFileSync(path, `${config.pkcs11_toml.trimEnd()}\n${lines}`, { mode: 0o600 });
  chmodSync(path, 0o600);
  return path;
};

export const createGroup = async (api: ConsoleApi, name: string): Promise<string> =>
  (await api.call<{ id: string }>('POST', '/api/tde/groups', { name })).id;

export const registerApplication = (api: ConsoleApi, name: string, groupId: string): Promise<RegisteredApplication> =>
  api.call('POST', '/api/tde/applications', { name, groupId });
