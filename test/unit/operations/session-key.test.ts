// The key that hashes the values of sessions is rotated: sessions end, tokens of programs stay
// valid, and nothing remains of the former key.
import { expect, test } from 'vitest';
import { administrator } from '../../support/open-service.ts';
import { errorOf, originOf } from '../../support/people.ts';
import { restart, sharedService } from '../../support/shared.ts';
import { queryStored } from '../../support/test-store.ts';

const opened = sharedService();

test('all sessions end; API tokens and access_guids stay valid, also over a restart', async () => {
  const { sessions, tokens, audit } = opened.operations;
  const grants = [{ role: 'administrator', scope: null }] as const;
  const { token } = await tokens.create(administrator, 'the service', { name: 'a program', grants });
  const before = [await sessions.startByToken(token, originOf()), await sessions.startByToken(token, originOf())];
  const [first] = before;
  expect((await sessions.authenticate(first?.value ?? '', 'call', null)).sessionId).toBe(first?.sessionId);

  expect(await sessions.rotateKey(administrator)).toEqual({ sessionsEnded: 2 });
  for (const { value } of before)
    expect(await errorOf(sessions.authenticate(value, 'call', null))).toBe('unauthenticated');
  const after = await sessions.startByToken(token, originOf());
  expect((await sessions.authenticate(after.value, 'call', null)).sessionId).toBe(after.sessionId);
  const [record] = (await audit.list(administrator, { kind: 'session.key-rotated' })).items;
  expect(record).toMatchObject({ actorName: 'test', details: { sessionsEnded: 2 } });
  const stored = await queryStored(
    opened.folder,
    "select version, record is null as gone from key_records where class = 'session-hash' order by version",
  );
  expect(stored.map(({ version, gone }) => [Number(version), Boolean(gone)])).toEqual([
    [1, true],
    [2, false],
  ]);

  await restart(opened);
  const again = opened.operations.sessions;
  expect((await again.authenticate(after.value, 'call', null)).sessionId).toBe(after.sessionId);
  expect(await errorOf(again.authenticate(first?.value ?? '', 'call', null))).toBe('unauthenticated');
  expect((await again.startByToken(token, originOf())).sessionId).not.toBe(after.sessionId);
  expect(await again.rotateKey(administrator)).toEqual({ sessionsEnded: 2 });
});

test('a session of a token ends with the token, also between two requests of the same moment', async () => {
  const { sessions, tokens } = opened.operations;
  const grants = [{ role: 'administrator', scope: null }] as const;
  const { token, record } = await tokens.create(administrator, 'the service', { name: 'for a moment', grants });
  const { value } = await sessions.startByToken(token, originOf());
  expect((await sessions.authenticate(value, 'r', null)).missing).toBeNull();
  await tokens.revoke(administrator, 'the service', record.id);
  await expect(sessions.authenticate(value, 'r', null)).rejects.toMatchObject({ code: 'unauthenticated' });
});

test('what a page asks on its own makes no session last longer', async () => {
  const { sessions, tokens } = opened.operations;
  const grants = [{ role: 'administrator', scope: null }] as const;
  const { token } = await tokens.create(administrator, 'the service', { name: 'of an open page', grants });
  const { value, sessionId } = await sessions.startByToken(token, originOf());
  const usedAt = async (): Promise<number> => {
    const [row] = await queryStored(opened.folder, `select used_at from sessions where id = '${sessionId}'`);
    return Number(row?.used_at);
  };
  // The last use is written once a minute: it is two minutes ago.
  const before = (await usedAt()) - 120_000;
  await queryStored(opened.folder, `update sessions set used_at = ${before} where id = '${sessionId}'`);
  expect((await sessions.authenticate(value, 'r', null, { isUse: false })).missing).toBeNull();
  expect(await usedAt()).toBe(before);
  expect((await sessions.authenticate(value, 'r', null, { isUse: true })).missing).toBeNull();
  expect(await usedAt()).toBeGreaterThan(before + 60_000);
});
