// Families of templates: whatever a release names of its master key and of its metadata, in
// whatever order, either the creation is refused, or the key decrypts what it has encrypted: after
// a restart, after a tag, after a rotation, and for a clone in another application of the group.
// The rule belongs to our library; other tokens have session objects for a template without
// CKA_TOKEN.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CKR } from '../../provider/schema/return-values.ts';
import { inLongTier } from '../support/tiers.ts';
import { findLibrary } from './library.ts';
import { type Answer, type DatabaseProcess, startDatabaseProcess } from './process.ts';
import type { DatabaseHost } from './process-table.ts';
import { readProfile, writeDriverProfile } from './profile.ts';
import {
  type Combination,
  type Dimensions,
  dangerous,
  everyCombination,
  keyDimensions,
  keyTemplate,
  metadataDimensions,
  metadataTemplate,
  mustBe,
  pairwise,
  usableDimensions,
  usualKey,
  usualMetadata,
} from './template-family.ts';
import { pin, startWorld, type World } from './world.ts';

const profile = readProfile('12c-19c');
let world: World;
let source: DatabaseHost;
let clone: DatabaseHost;
let started = 0;

beforeAll(async () => {
  world = await startWorld.DKE();
  const group = await world.group('families');
  source = await group.host('source');
  clone = await group.host('clone');
  writeDriverProfile(profile, join(world.folder, 'family-profile'));
});
afterAll(() => world.end());

/**
 * A process that has logged in, and asks no attribute back: that is a rule of the profile, not of
 * the token.
 */
const open = async (host: DatabaseHost): Promise<DatabaseProcess> => {
  started += 1;
  const process_ = startDatabaseProcess({
    role: 'fg0',
    name: 'ora_fg0_FAMILY',
    profile: join(world.folder, 'family-profile'),
    trace: join(host.traces, `family.${started}`),
    environment: host.environment,
  });
  const library = findLibrary(host.base, null, process.getuid?.() ?? 0);
  for (const [step, given] of [
    ['load', { library }],
    ['open', { pin, probe: false }],
    ['template', { name: 'ask', items: '' }],
  ] as const)
    expect(await process_.step(step, given)).toMatchObject({ ok: true });
  return process_;
};

interface Case {
  readonly key: Combination;
  readonly metadata: Combination;
}
/** Values of a case that differ from the usual ones, which is how a failure is read. */
const told = ({ key, metadata }: Case): string =>
  [
    ['key', key, usualKey],
    ['metadata', metadata, usualMetadata],
  ]
    .flatMap(([what, of, usual]) =>
      Object.entries(of as Combination)
        .filter(([name, value]) => (usual as Combination)[name] !== value)
        .map(([name, value]) => `${what} ${name} ${value}`),
    )
    .join(', ') || 'the usual templates';

const fault = (answer: Answer): string => `${answer.call ?? answer.why} 0x${(answer.rv ?? 0).toString(16)}`;
/** A key of the database: two blocks, the second different for each use. */
const clear = (use: number): string => `${'4b'.repeat(16)}${use.toString(16).padStart(2, '0').repeat(16)}`;

interface Played extends Case {
  id: string | null;
  /** What each master key has wrapped. */
  readonly wrapped: { readonly id: string; readonly value: string; readonly use: number }[];
  /** Why the creation, or the first use, was refused. */
  refused: string | null;
  tag: string;
  readonly lost: string[];
}

const create = async (by: DatabaseProcess, of: Case): Promise<Answer> => {
  await by.step('template', { name: 'generate', items: keyTemplate(of.key) });
  await by.step('template', { name: 'create-data', items: metadataTemplate(of.metadata) });
  return await by.step('generate', { role: '06', about: 'created' });
};
const wrap = async (by: DatabaseProcess, played: Played, id: string, use: number): Promise<boolean> => {
  const answer = await by.step('cipher', { id, encrypt: true, in: clear(use) });
  if (answer.ok) played.wrapped.push({ id, value: answer.value ?? '', use });
  else played.refused ??= fault(answer);
  return answer.ok;
};
const readBack = async (by: DatabaseProcess, played: Played, when: string): Promise<void> => {
  for (const { id, value, use } of played.wrapped) {
    const answer = await by.step('cipher', { id, encrypt: false, in: value });
    if (!answer.ok) played.lost.push(`${when}: ${fault(answer)}`);
    else if (answer.value !== clear(use)) played.lost.push(`${when}: other bytes`);
  }
};
/** A tag is written into the object, or into a new one; a refusal changes nothing. */
const setTag = async (by: DatabaseProcess, played: Played, id: string, tag: string, when: string): Promise<void> => {
  const changed = (await by.step('tag', { id, tag })).ok || (await by.step('tag', { id, tag, again: true })).ok;
  if (changed) played.tag = tag;
  await checkTag(by, played, id, when);
};
const checkTag = async (by: DatabaseProcess, played: Played, id: string, when: string): Promise<void> => {
  const read = await by.step('metadata', { id });
  if (!read.ok) played.lost.push(`${when}: metadata: ${fault(read)}`);
  else if (read.value !== played.tag) played.lost.push(`${when}: metadata says ${read.value}`);
};

const play = async (cases: readonly Case[]): Promise<readonly Played[]> => {
  const all: Played[] = cases.map((each) => ({
    ...each,
    id: null,
    wrapped: [],
    refused: null,
    tag: 'created',
    lost: [],
  }));
  const kept = (): readonly (Played & { id: string })[] =>
    all.filter((each): each is Played & { id: string } => each.id !== null && each.wrapped.length > 0);
  const first = await open(source);
  for (const each of all) {
    const answer = await create(first, each);
    if (!answer.ok) each.refused = fault(answer);
    else if (await wrap(first, each, answer.id ?? '', 1)) each.id = answer.id ?? '';
  }
  await first.stop();

  const second = await open(source);
  for (const each of kept()) {
    await readBack(second, each, 'after a restart');
    await setTag(second, each, each.id, 'tagged', 'after a tag');
    const next = await create(second, each);
    if (next.ok) await wrap(second, each, next.id ?? '', 2);
    else each.lost.push(`rotation: ${fault(next)}`);
    await readBack(second, each, 'after a rotation');
  }
  await second.stop();

  const other = await open(clone);
  for (const each of kept()) {
    await readBack(other, each, 'in a clone');
    // Metadata belongs to the application that created it (decision 41).
    for (const again of [false, true]) {
      const tagged = await other.step('tag', { id: each.id, tag: 'by the clone', again });
      if (tagged.ok || tagged.rv !== CKR.ACTION_PROHIBITED) each.lost.push(`a tag by the clone: ${fault(tagged)}`);
    }
    await checkTag(other, each, each.id, 'a tag by the clone');
    const own = await create(other, each);
    if (own.ok) await wrap(other, each, own.id ?? '', 3);
    else each.lost.push(`key of the clone: ${fault(own)}`);
  }
  await other.stop();

  const third = await open(source);
  for (const each of kept()) {
    await readBack(third, each, 'after everything');
    const read = await third.step('metadata', { id: each.id });
    if (read.value !== each.tag) each.lost.push(`after everything: metadata says ${read.value ?? fault(read)}`);
  }
  await third.stop();
  return all;
};

/** Batches, so that restarts are shared. */
const judge = async (cases: Iterable<Case>): Promise<void> => {
  const wrong: string[] = [];
  const counts = { works: 0, refused: 0 };
  const judgeBatch = async (batch: readonly Case[]): Promise<void> => {
    for (const each of await play(batch)) {
      const outcome = each.id === null ? 'refused' : 'works';
      counts[outcome] += 1;
      const [loss, ...more] = each.lost;
      if (loss !== undefined)
        wrong.push(`${told(each)}: ${loss}${more.length === 0 ? '' : `, and ${more.length} more`}`);
      const wanted = each.metadata === usualMetadata ? mustBe(each.key) : 'either';
      if (wanted !== 'either' && wanted !== outcome)
        wrong.push(`${told(each)}: ${outcome}${each.refused === null ? '' : ` (${each.refused})`}, not ${wanted}`);
    }
  };
  let batch: Case[] = [];
  for (const each of cases) {
    batch.push(each);
    if (batch.length < 128) continue;
    await judgeBatch(batch);
    batch = [];
  }
  await judgeBatch(batch);
  console.log(`${counts.works} templates work, ${counts.refused} are refused`);
  expect(wrong.slice(0, 40), `${wrong.length} findings`).toEqual([]);
};

function* keyCases(combinations: Iterable<Combination>): Generator<Case> {
  for (const key of combinations) yield { key, metadata: usualMetadata };
}
function* metadataCases(combinations: Iterable<Combination>): Generator<Case> {
  for (const metadata of combinations) yield { key: { ...usualKey, DECRYPT: 'true' }, metadata };
}
/**
 * Shares of a whole family, by the values of these dimensions: each is a test, so that the limit of
 * a test is that of a share.
 */
const shares = (dimensions: Dimensions, ...names: readonly string[]): readonly [string, Dimensions][] =>
  [...everyCombination(Object.fromEntries(names.map((name) => [name, dimensions[name] ?? []])))].map((fixed) => [
    Object.entries(fixed)
      .map((each) => each.join(' '))
      .join(', '),
    { ...dimensions, ...Object.fromEntries(Object.entries(fixed).map(([name, value]) => [name, [value]])) },
  ]);
/**
 * A share of the whole family; what has no part in whether a key decrypts changes from one to the
 * next, so that all its values come along.
 */
function* everyKey({ others = [], SENSITIVE = [], type = [], order = [], ...dimensions }: Dimensions) {
  const along = pairwise({ others, SENSITIVE, type, order });
  let index = 0;
  for (const each of everyCombination(dimensions)) {
    index += 1;
    yield { ...each, ...along[index % along.length] };
  }
}

describe('a master key that was created decrypts permanently, or its creation is refused', () => {
  const whole = 'tde/template-family: every combination';
  test('the templates that are known to be dangerous', () => judge(keyCases(dangerous)));
  test('any two values of a key’s template together', () => judge(keyCases(pairwise(keyDimensions))));
  test('any two values of a template that a release could use', () => judge(keyCases(pairwise(usableDimensions))));
  test('any two values of a metadata object’s template together', () =>
    judge(metadataCases(pairwise(metadataDimensions))));
  describe.runIf(inLongTier(whole))('every combination', () => {
    test.each(shares(keyDimensions, 'ENCRYPT', 'DECRYPT', 'WRAP', 'UNWRAP'))('of a key’s template: %s', (_, share) =>
      judge(keyCases(everyKey(share))),
    );
    test.each(shares(metadataDimensions, 'TOKEN', 'PRIVATE', 'MODIFIABLE'))(
      'of a metadata object’s template: %s',
      (_, share) => judge(metadataCases(everyCombination(share))),
    );
  });
});
