// What a connection to PostgreSQL has set is compared with what it reads back: a pooler or an
// extension that changes it is noticed before anything is written.
import { expect, test } from 'vitest';
import {
  enterSql,
  pathOf,
  requireOwnBackend,
  requireSession,
} from '../../../server/adapters/store/engine/postgres/session-settings.ts';

const settings =
  'lock_timeout=0 default_transaction_isolation=read committed default_transaction_read_only=off default_transaction_deferrable=off';
const session = { backend: 7, schema: 'dke', settings, commits: 'on' };

test.each(['on', 'local', 'remote_write', 'remote_apply'])(
  'a session with synchronous_commit %s is taken',
  (commits) => {
    expect(() => requireSession({ ...session, commits }, 'dke')).not.toThrow();
    expect(() => requireSession({ ...session, commits }, undefined)).not.toThrow();
  },
);

test.each([
  ['waits for locks', { settings: settings.replace('lock_timeout=0', 'lock_timeout=1s') }, 'does not keep'],
  ['isolates otherwise', { settings: settings.replace('read committed', 'serializable') }, 'does not keep'],
  ['is read-only', { settings: settings.replace('read_only=off', 'read_only=on') }, 'does not keep'],
  ['defers', { settings: settings.replace('deferrable=off', 'deferrable=on') }, 'does not keep'],
  ['does not wait for the disk', { commits: 'off' }, 'does not keep'],
  ['has another schema', { schema: 'public' }, 'not in the search_path'],
  ['has no schema', { schema: null }, 'not in the search_path'],
] as const)('a session that %s is refused', (_, change, words) => {
  expect(() => requireSession({ ...session, ...change }, 'dke')).toThrow(words);
});

test('the first words of a session call nothing that a search_path can choose', () => {
  expect([...enterSql.matchAll(/([\w.]+)\(/g)].map(([, name]) => name)).toEqual([
    'pg_catalog.current_schema',
    'pg_catalog.set_config',
  ]);
  expect(enterSql.replaceAll(/'[^']*'/g, '')).toMatch(/^[\w.(), ]+$/);
});

test.each([
  ['dke', '"dke", pg_temp'],
  ['a"b, evil', '"a""b, evil", pg_temp'],
  [null, '"", pg_temp'],
])('the path of the schema %j is one name', (schema, path) => {
  expect(pathOf(schema)).toBe(path);
});

test('another server process than the one that announced itself is a pooler', () => {
  expect(() => requireOwnBackend(7, '7')).not.toThrow();
  expect(() => requireOwnBackend(null, '8')).not.toThrow();
  expect(() => requireOwnBackend(7, '8')).toThrow('pooler');
});
