// Who may do what with a master key, through the library, the agent and the service: one table of
// callers and states, each with the return value that the database prints and the service's record
// of a refusal. Then a clone within the group and outside it, a move while sessions are open, and a
// token with 500 keys.
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RegisteredApplication } from '../../server/contract/api/tde-applications-routes.ts';
import { createGroup, registerApplication } from '../support/console-api.ts';
import type { Answer, Database } from '../support/database.ts';
import { type Site, startSite } from '../support/site.ts';

const iv = '00'.repeat(16);
const plain = '42'.repeat(32);
const label = (): string => `ORACLE.TDE.HSM.MK.06${randomBytes(16).toString('hex').toUpperCase()}`;

let site: Site;
let group: string;
const applications: Record<string, RegisteredApplication> = {};
const databases: Record<string, Database> = {};

const open = async (name: string, groupId: string): Promise<Database> => {
  const application = await registerApplication(site.api, name, groupId);
  applications[name] = application;
  const database = site.database(site.config(name, application));
  expect((await database.call('open', { pin: '' })).rv).toBe('CKR_OK');
  databases[name] = database;
  return database;
};
const database = (name: string): Database => {
  const found = databases[name];
  if (found === undefined) throw new Error(`no database ${name}`);
  return found;
};
const idOf = (name: string): string => applications[name]?.application.id ?? '';
/** What the agents logged as errors: the cause of a return value. */
const causes = (): string =>
  readdirSync(site.folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /(^|-)log\/.*\.log$/.test(name))
    .flatMap((name) => readFileSync(join(site.folder, name), 'utf8').split('\n'))
    .filter((line) => line.includes('"rv":"CKR_'))
    .slice(-5)
    .join('\n');
const must = async (answer: Promise<Answer>): Promise<Answer> => {
  const given = await answer;
  if (given.rv !== 'CKR_OK') throw new Error(`${given.rv}\n${causes()}`);
  return given;
};

beforeAll(async () => {
  site = await startSite();
  group = await createGroup(site.api, 'finance');
  await open('owner', group);
  await open('member', group);
  await open('suspended', group);
  await open('outsider', await createGroup(site.api, 'apart'));
  await site.api.call('POST', `/api/tde/applications/${idOf('suspended')}/disable`);
});
afterAll(() => site.end());

// --- the table -----------------------------------------------------------------------------------

const operations = [
  'find',
  'read attributes',
  'encrypt',
  'decrypt',
  'wrap',
  'unwrap',
  'set attribute',
  'copy',
  'destroy',
  'generate same label',
] as const;
type Operation = (typeof operations)[number];

/** A return value, and the reason in the service's record (`key.denied`) when there is one. */
type Cell = readonly [rv: string, recorded?: string];
const ok: Cell = ['CKR_OK'];
/** C_FindObjects succeeds and finds nothing. */
const nothing = (recorded?: string): Cell => (recorded === undefined ? ['none'] : ['none', recorded]);
const taken: Cell = ['CKR_TEMPLATE_INCONSISTENT'];
/** A key in custody is never copied, for any caller. */
const custody: Cell = ['CKR_ACTION_PROHIBITED'];
const keyGone = (reason: string): Cell => ['CKR_KEY_HANDLE_INVALID', reason];
const objectGone = (reason: string): Cell => ['CKR_OBJECT_HANDLE_INVALID', reason];
const everything = (cell: Cell): Readonly<Record<Operation, Cell>> =>
  Object.fromEntries(operations.map((operation) => [operation, cell])) as Record<Operation, Cell>;
const unusable = (cell: Cell): Pick<Record<Operation, Cell>, 'encrypt' | 'decrypt' | 'wrap' | 'unwrap'> => ({
  encrypt: cell,
  decrypt: cell,
  wrap: cell,
  unwrap: cell,
});
const gone = (reason: string): Readonly<Record<Operation, Cell>> => ({
  find: nothing(),
  'read attributes': objectGone(reason),
  encrypt: keyGone(reason),
  decrypt: keyGone(reason),
  wrap: ['CKR_WRAPPING_KEY_HANDLE_INVALID', reason],
  unwrap: ['CKR_UNWRAPPING_KEY_HANDLE_INVALID', reason],
  'set attribute': objectGone(reason),
  copy: objectGone(reason),
  destroy: objectGone(reason),
  'generate same label': ok,
});
const owned: Readonly<Record<Operation, Cell>> = {
  ...everything(ok),
  copy: custody,
  'generate same label': taken,
};

const table = {
  owner: { by: 'owner', state: 'active', cells: owned },
  'group member': {
    by: 'member',
    state: 'active',
    cells: {
      ...owned,
      'set attribute': ['CKR_ACTION_PROHIBITED', 'owned by another application'],
      destroy: ['CKR_ACTION_PROHIBITED', 'owned by another application'],
    },
  },
  outsider: {
    by: 'outsider',
    state: 'active',
    cells: { ...gone('another group'), find: nothing('another group') },
  },
  'suspended application': { by: 'suspended', state: 'active', cells: everything(['CKR_ACTION_PROHIBITED']) },
  'disabled key': {
    by: 'owner',
    state: 'disabled',
    cells: { ...owned, ...unusable(['CKR_KEY_FUNCTION_NOT_PERMITTED', 'key-disabled']) },
  },
  'soft-deleted key': { by: 'owner', state: 'soft-deleted', cells: owned },
  'destroyed key': { by: 'owner', state: 'destroyed', cells: gone('key-destroyed') },
} as const satisfies Record<
  string,
  {
    readonly by: string;
    readonly state: 'active' | 'disabled' | 'soft-deleted' | 'destroyed';
    readonly cells: Readonly<Record<Operation, Cell>>;
  }
>;

/** The inputs of an operation: a fresh key, its ciphertext, and a key that it wrapped. */
interface Subject {
  readonly name: string;
  readonly id: string;
  readonly handle: number;
  readonly encrypted: string;
  readonly wrapped: string;
}
const subject = async (state: (typeof table)[keyof typeof table]['state']): Promise<Subject> => {
  const name = label();
  const owner = database('owner');
  const { handle = 0 } = await must(owner.call('generate', { label: name }));
  const { data: encrypted = '' } = await must(owner.call('encrypt', { handle, iv, data: plain }));
  const { data: wrapped = '' } = await must(owner.call('wrap', { handle }));
  const { id } = await site.api.masterKey(idOf('owner'), name);
  if (state === 'disabled') await site.api.call('POST', `/api/keys/${id}/disable`);
  if (state === 'soft-deleted') await site.api.call('DELETE', `/api/keys/${id}`);
  if (state === 'destroyed') await must(owner.call('destroy', { handle }));
  return { name, id, handle, encrypted, wrapped };
};

const attempts: Readonly<Record<Operation, (on: Database, key: Subject) => Promise<Answer>>> = {
  find: (on, { name }) => on.call('find', { label: name }),
  'read attributes': (on, { handle }) => on.call('attribute', { handle, name: 'LABEL' }),
  encrypt: (on, { handle }) => on.call('encrypt', { handle, iv, data: plain }),
  decrypt: (on, { handle, encrypted }) => on.call('decrypt', { handle, iv, data: encrypted }),
  wrap: (on, { handle }) => on.call('wrap', { handle }),
  unwrap: (on, { handle, wrapped }) => on.call('unwrap', { handle, data: wrapped }),
  'set attribute': (on, { handle }) => on.call('setLabel', { handle, label: label() }),
  copy: (on, { handle }) => on.call('copy', { handle, label: label() }),
  destroy: (on, { handle }) => on.call('destroy', { handle }),
  'generate same label': (on, { name }) => on.call('generate', { label: name }),
};

describe.each(Object.entries(table))('%s', (who, { by, state, cells }) => {
  const rows: Readonly<Record<Operation, Cell>> = cells;
  test.each(operations)('%s: the return value, and the record of a refusal', async (operation) => {
    const key = await subject(state);
    const answer = await attempts[operation](database(by), key);
    const [rv, recorded] = rows[operation];
    if (operation === 'find' && answer.rv === 'CKR_OK') {
      expect(answer.handles, who).toEqual(rv === 'none' ? [] : [key.handle]);
    } else {
      expect(answer.rv, who).toBe(rv);
    }
    const records = await site.api.audit(`subjectId=${key.id}&kind=key.denied`);
    if (recorded === undefined) {
      expect(records).toEqual([]);
      return;
    }
    expect(records.length).toBeGreaterThan(0);
    for (const { actorId, details } of records) {
      expect(actorId).toBe(idOf(by));
      expect(details).toMatchObject({ name: key.name, applicationId: idOf(by), reason: recorded });
      expect(details).toMatchObject({ host: expect.stringMatching(/./), process: 'node' });
    }
  });
});

// --- clone and move ------------------------------------------------------------------------------

describe('a clone', () => {
  test('in the group opens with the source’s master key, then sets its own, and the source loses nothing', async () => {
    const source = database('owner');
    const clone = database('member');
    const name = label();
    const { handle = 0 } = await must(source.call('generate', { label: name }));
    const { data: tableKey = '' } = await must(source.call('encrypt', { handle, iv, data: plain }));

    expect((await must(clone.call('find', { label: name }))).handles).toEqual([handle]);
    expect((await must(clone.call('decrypt', { handle, iv, data: tableKey }))).data).toBe(plain);
    const { handle: own = 0 } = await must(clone.call('generate', { label: label() }));
    const { data: again = '' } = await must(clone.call('encrypt', { handle: own, iv, data: plain }));
    expect((await must(clone.call('decrypt', { handle: own, iv, data: again }))).data).toBe(plain);
    expect(await clone.call('destroy', { handle })).toEqual({ rv: 'CKR_ACTION_PROHIBITED' });
    expect((await must(source.call('decrypt', { handle, iv, data: tableKey }))).data).toBe(plain);
  });

  test('that leaves the group stops with its next call, in a session that was open, and keeps its own key', async () => {
    const source = database('owner');
    const leaver = await open('leaver', group);
    const { handle = 0 } = await must(source.call('generate', { label: label() }));
    const { handle: own = 0 } = await must(leaver.call('generate', { label: label() }));
    const { data = '' } = await must(leaver.call('encrypt', { handle: own, iv, data: plain }));
    await must(leaver.call('encrypt', { handle, iv, data: plain }));
    // An operation that had started, too.
    await must(leaver.call('encryptInit', { handle, iv }));

    const groupId = await createGroup(site.api, 'left');
    const path = `/api/tde/applications/${idOf('leaver')}/move`;
    const planned = await site.api.call<{ move: { keys: number; keysLost: number } }>('POST', `${path}?dryRun=true`, {
      groupId,
    });
    expect(planned.move.keys).toBe(1);
    expect(planned.move.keysLost).toBeGreaterThan(0);
    expect((await site.api.send('POST', path, { groupId })).status).toBe(400);
    await site.api.call('POST', path, { groupId, confirm: 'leaver' });

    expect(await leaver.call('encryptFinish', { data: plain })).toEqual({ rv: 'CKR_KEY_HANDLE_INVALID' });
    expect(await leaver.call('encrypt', { handle, iv, data: plain })).toEqual({ rv: 'CKR_KEY_HANDLE_INVALID' });
    expect((await must(leaver.call('decrypt', { handle: own, iv, data }))).data).toBe(plain);
    expect(await source.call('decrypt', { handle: own, iv, data })).toEqual({ rv: 'CKR_KEY_HANDLE_INVALID' });
  });
});

// --- a long rotation history ---------------------------------------------------------------------

describe('a token with 500 keys', () => {
  const keys = 500;
  let rotated: Database;
  let names: readonly string[];
  let marker: number;
  /** Requests to the service so far, by the agent's own log. */
  const asked = () => {
    const lines = readdirSync(join(site.folder, 'rotated-log'))
      .flatMap((name) => readFileSync(join(site.folder, 'rotated-log', name), 'utf8').split('\n'))
      .filter((line) => line.includes('"asked the service"'));
    const ofMarker = lines.filter((line) => line.includes(`"handle":${marker},`));
    return {
      marks: ofMarker.filter((line) => line.includes('"route":"encrypt"')).length,
      others: lines.length - ofMarker.length,
    };
  };
  const requests = async (work: () => Promise<unknown>): Promise<number> => {
    // The log is written later, in order: when the mark of this moment is in it, so is everything
    // before.
    const settled = async (): Promise<number> => {
      const { marks } = asked();
      await must(rotated.call('encrypt', { handle: marker, iv, data: plain }));
      await expect.poll(() => asked().marks).toBe(marks + 1);
      return asked().others;
    };
    const from = await settled();
    await work();
    return (await settled()) - from;
  };

  beforeAll(async () => {
    const application = await registerApplication(site.api, 'rotated', await createGroup(site.api, 'history'));
    applications.rotated = application;
    const config = site.config('rotated', application);
    const text = readFileSync(config, 'utf8').replace(/^log_dir = .*$/m, `log_dir = "${site.folder}/rotated-log"`);
    writeFileSync(config, `${text}log_level = "debug"\nkey_check_ms = 0\n`, { mode: 0o600 });
    rotated = site.database(config);
    await must(rotated.call('open', { pin: '' }));
    names = Array.from({ length: keys }, label);
    for (const name of names) marker = (await must(rotated.call('generate', { label: name }))).handle ?? 0;
  });

  test('finds the first and the last by their labels with one request each', async () => {
    for (const name of [names[0], names.at(-1)]) {
      const count = await requests(async () => {
        expect((await must(rotated.call('find', { label: name ?? '' }))).handles).toHaveLength(1);
      });
      expect(count).toBe(1);
    }
  });

  test('gives all of them to who lists, and loses none', async () => {
    const path = `/api/tde/applications/${idOf('rotated')}/master-keys`;
    const seen: { name: string; newest: boolean; createdAt: string }[] = [];
    for (let after = ''; ; ) {
      const page = await site.api.call<{ items: typeof seen; next: string | null }>('GET', `${path}?limit=200${after}`);
      seen.push(...page.items);
      if (page.next === null) break;
      after = `&after=${page.next}`;
    }
    expect(seen.map(({ name }) => name)).toEqual(names.toReversed());
    expect(seen.map(({ newest }) => newest).lastIndexOf(true)).toBe(0);
    expect(seen.map(({ createdAt }) => createdAt)).toEqual(
      seen
        .map(({ createdAt }) => createdAt)
        .toSorted()
        .reverse(),
    );
  });

  test('uses the oldest with as few requests as a token with one key has', async () => {
    const [oldest = ''] = names;
    const { handles: [handle = 0] = [] } = await must(rotated.call('find', { label: oldest }));
    expect(await requests(() => must(rotated.call('encrypt', { handle, iv, data: plain })))).toBeLessThanOrEqual(2);
  });
});
