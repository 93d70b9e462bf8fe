// What the row key authenticates. It has several jobs, kept apart by what a text begins with: no
// text of one job is ever one of another. A use that is not in this table fails here.
import { expect, test } from 'vitest';
import { files, read, withoutComments } from '../support/sources.ts';

/** How a text of each job begins, and what follows there. */
const jobs: Readonly<Record<string, { readonly file: string; readonly begins: string; readonly next: RegExp }>> = {
  'the code of a row': { file: 'server/store/row-codes.ts', begins: '[', next: /["{]/ },
  'what nodes tell one another': { file: 'server/store/change-codes.ts', begins: '["node_changes",', next: /\d/ },
  'what a row adds to the sum': { file: 'server/store/row-set-head.ts', begins: 'row set element ', next: /[a-z]/ },
  'the mask of a sum': { file: 'server/store/row-set-head.ts', begins: 'row set mask ', next: /\d/ },
  'the code of a sum': { file: 'server/store/row-set-head.ts', begins: 'row set ', next: /\d/ },
  'the id of a request that is done once': {
    ...{ file: 'server/operations/shared/idempotency.ts', begins: 'idempotency id ', next: /./ },
  },
  'the content of such a request': {
    ...{ file: 'server/operations/shared/idempotency.ts', begins: 'idempotency fingerprint ', next: /./ },
  },
  'records of the request log that were removed': {
    ...{ file: 'server/operations/requests/request-retention.ts', begins: 'removed request records ', next: /./ },
  },
  "the service's own probes": { file: 'server/base/probe-mark.ts', begins: 'own probe ', next: /./ },
};

const call = /\bauthenticate(?:Row)?\((?!text\)|text:)(`[^`]*`|[^;]*?\))/g;
/** The fixed front of the text of a call; undefined: it is a list in canonical JSON. */
const frontOf = (argument: string): string | undefined => /^`([^$`]*)/.exec(argument)?.[1];

const uses = files(['server'], '.ts')
  .filter((path) => !path.startsWith('server/fronts/') && !path.startsWith('server/client/'))
  .flatMap((path) =>
    [...withoutComments(read(path)).matchAll(call)]
      .map(([, argument = '']) => argument)
      .filter((argument) => /^(?:`|canonicalJson|rowText)/.test(argument))
      .map((argument) => ({ path, front: frontOf(argument) })),
  );

test('the row key authenticates only texts of this table', () => {
  const known = Object.values(jobs);
  const unknown = uses.filter(
    ({ path, front }) =>
      !known.some(
        ({ file, begins }) => file === path && (front === undefined ? begins.startsWith('[') : begins === front),
      ),
  );
  expect(unknown).toEqual([]);
  for (const [job, { file }] of Object.entries(jobs))
    expect(
      uses.filter(({ path }) => path === file),
      job,
    ).not.toEqual([]);
});

test('no text of one job is one of another', () => {
  const all = Object.entries(jobs);
  for (const [job, { begins }] of all)
    for (const [other, { begins: front, next: after }] of all) {
      if (job === other || !begins.startsWith(front)) continue;
      // Both are lists: see the next test.
      if (job === 'what nodes tell one another') continue;
      // What continues the longer front continues no text of the other job.
      expect(after.test(begins.slice(front.length, front.length + 1)), `${job} and ${other}`).toBe(false);
    }
});

test('no policy table has the name that changes have in the place of a table', () => {
  expect(
    files(['server/store/tables'], '.ts').filter((path) => /node_changes: policyTable\(/.test(read(path))),
  ).toEqual([]);
});
