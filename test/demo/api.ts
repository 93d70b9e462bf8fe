// The demonstration's hands on the console API: one HTTPS call with the administrator's token, checked against nothing but
// the status, since the transcript checks what it says.

import { readFileSync } from 'node:fs';
import { request } from 'node:https';

export interface Api {
  call<Answer>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<Answer>;
}

/** Rejects with the problem document's own words when the answer is not a success. */
export const openApi = (options: { readonly url: string; readonly caFile: string; readonly token: string }): Api => {
  const ca = readFileSync(options.caFile);
  return {
    call: <Answer>(method: string, path: string, body?: object) =>
      new Promise<Answer>((resolve, reject) => {
        const sent = request(
          new URL(path, options.url),
          {
            method,
            ca,
            agent: false,
            headers: {
              authorization: `Bearer ${options.token}`,
              ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            },
          },
          (answer) => {
            const parts: Buffer[] = [];
            answer.on('data', (part: Buffer) => parts.push(part));
            answer.on('end', () => {
              const text = Buffer.concat(parts).toString('utf8');
              const status = answer.statusCode ?? 0;
              if (status >= 200 && status < 300) resolve((text === '' ? undefined : JSON.parse(text)) as Answer);
              else reject(new Error(`${method} ${path} was answered with ${status}: ${text}`));
            });
            answer.on('error', reject);
          },
        );
        sent.on('error', reject);
        sent.end(body === undefined ? undefined : JSON.stringify(body));
      }),
  };
};
