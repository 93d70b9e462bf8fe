// What the people on duty have on a game day: Prometheus' view of the service with the shipped
// alert rules, /health, and the inbox.
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import type { Notification } from '../../server/contract/api/notifications-routes.ts';
import { type AlertRule, compileRule, readAlertRules, type Scrape } from '../support/alert-rules.ts';
import type { ConsoleApi } from '../support/console-api.ts';
import { readExposition } from '../support/exposition.ts';

export interface Watch {
  /** Starts again, so that nothing of an earlier fault counts. */
  begin(): void;
  /** Scrapes once; answers the alerts that fire: true at this scrape and at the one before. */
  look(): Promise<ReadonlySet<string>>;
  /** The status of /health and its word; undefined: no answer. */
  health(): Promise<string | undefined>;
  /** The kinds of the notifications that are open; undefined: no answer. */
  inbox(): Promise<ReadonlySet<string> | undefined>;
}

const timeoutMs = 10_000;

export const openWatch = (
  server: { readonly url: string; readonly caFile: string },
  api: ConsoleApi,
  rules: readonly AlertRule[] = readAlertRules(),
): Watch => {
  const ca = readFileSync(server.caFile);
  const compiled = rules.map((rule) => ({ rule, isTrue: compileRule(rule) }));
  const scrapes: Scrape[] = [];
  let before: ReadonlySet<string> = new Set();
  const get = (path: string): Promise<{ status: number; text: string } | undefined> =>
    new Promise((resolve) => {
      const sent = request(new URL(path, server.url), { ca, agent: false, timeout: timeoutMs }, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        answer.on('error', () => resolve(undefined));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
      });
      sent.on('timeout', () => sent.destroy());
      sent.on('error', () => resolve(undefined)).end();
    });
  const scrape = async (): Promise<Scrape> => {
    const answer = await get('/metrics');
    const target = { job: 'dke', instance: new URL(server.url).host };
    const samples = answer?.status === 200 ? readExposition(answer.text).samples : [];
    const up = { name: 'up', labels: target, value: samples.length > 0 ? 1 : 0 };
    return {
      at: Date.now() / 1000,
      samples: [up, ...samples.map((sample) => ({ ...sample, labels: { ...sample.labels, ...target } }))],
    };
  };
  return {
    begin: () => {
      scrapes.length = 0;
      before = new Set();
    },
    look: async () => {
      scrapes.push(await scrape());
      const now = new Set(compiled.filter(({ isTrue }) => isTrue(scrapes)).map(({ rule }) => rule.name));
      const fires = new Set([...now].filter((name) => before.has(name)));
      before = now;
      return fires;
    },
    health: async () => {
      const answer = await get('/health');
      return answer === undefined ? undefined : `${answer.status} ${JSON.parse(answer.text).status}`;
    },
    inbox: async () => {
      const answer = await api.send('GET', '/api/notifications?limit=1000').catch(() => undefined);
      if (answer?.status !== 200) return undefined;
      const { items } = JSON.parse(answer.text) as { readonly items: readonly Notification[] };
      return new Set(items.map(({ kind }) => kind));
    },
  };
};
