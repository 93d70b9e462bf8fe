// The jobs of the row key: each has a key of its own, and one place that uses it. What reads values
// of databases in which the row key itself had all jobs is in this table, with how its texts begin:
// no text of one of these jobs is one of another.
import { expect, test } from 'vitest';
import { labels } from '../../addon/labels.ts';
import { rowJobs } from '../../server/base/row-jobs.ts';
import { files, read, withoutComments } from '../support/sources.ts';

const places: Readonly<Record<(typeof rowJobs)[number], string>> = {
  'dke row codes 1': 'server/adapters/store/rows/row-codes.ts',
  'dke row set elements 1': 'server/adapters/store/rows/row-set-head.ts',
  'dke row set masks 1': 'server/adapters/store/rows/row-set-head.ts',
  'dke row set heads 1': 'server/adapters/store/rows/row-set-head.ts',
  'dke node changes 1': 'server/adapters/store/rows/change-codes.ts',
  'dke request ids 1': 'server/operations/shared/answer-once.ts',
  'dke request contents 1': 'server/operations/shared/answer-once.ts',
  'dke removed requests 1': 'server/operations/requests/request-retention.ts',
  'dke own probes 1': 'server/base/probe-mark.ts',
};
const declaring = ['server/base/row-jobs.ts', 'addon/labels.ts'];
const sources = files(['server', 'addon'], '.ts').map((path) => [path, withoutComments(read(path))] as const);

test('the key of a job is derived from the row key, and used in one place', () => {
  for (const job of rowJobs) {
    expect(labels[job]).toMatchObject({ use: 'HKDF', key: 'service' });
    const used = sources.filter(([path, text]) => text.includes(`'${job}'`) && !declaring.includes(path));
    expect([job, used.map(([path]) => path)]).toEqual([job, [places[job]]]);
    expect([job, read(places[job]).split(`'${job}'`).length - 1]).toEqual([job, 1]);
  }
});

/** How a text under the row key itself begins, and what follows there. */
const earlier: Readonly<Record<string, { readonly file: string; readonly begins: string; readonly next: RegExp }>> = {
  'the code of a row': { file: 'server/adapters/store/rows/row-codes.ts', begins: '[', next: /["{]/ },
  'what a row adds to the sum': {
    file: 'server/adapters/store/rows/row-set-head.ts',
    begins: 'row set element ',
    next: /[a-z]/,
  },
  'the mask of a sum': { file: 'server/adapters/store/rows/row-set-head.ts', begins: 'row set mask ', next: /\d/ },
  'the code of a sum': { file: 'server/adapters/store/rows/row-set-head.ts', begins: 'row set ', next: /\d/ },
  'the id of a request that is done once': {
    ...{ file: 'server/operations/shared/answer-once.ts', begins: 'idempotency id ', next: /./ },
  },
  'the content of such a request': {
    ...{ file: 'server/operations/shared/answer-once.ts', begins: 'idempotency fingerprint ', next: /./ },
  },
  'records of the request log that were removed': {
    ...{ file: 'server/operations/requests/request-retention.ts', begins: 'removed request records ', next: /./ },
  },
};

test('the row key itself reads only texts of this table', () => {
  const using = sources.filter(([, text]) => /\bauthenticate|RowJob/.test(text) && text.includes("'earlier'"));
  const known = Object.values(earlier).map(({ file }) => file);
  expect(using.map(([path]) => path).toSorted()).toEqual(
    [...new Set([...known, 'server/base/row-jobs.ts', 'server/adapters/crypto/key-ring.ts'])].toSorted(),
  );
  for (const { file, begins } of Object.values(earlier))
    if (begins !== '[') expect([file, read(file).includes(`\`${begins}\${`)]).toEqual([file, true]);
});

test('no text of one job under the row key itself is one of another', () => {
  for (const [job, { begins }] of Object.entries(earlier))
    for (const [other, { begins: front, next: after }] of Object.entries(earlier)) {
      if (job === other || !begins.startsWith(front)) continue;
      // What continues the longer front continues no text of the other job.
      expect(after.test(begins.slice(front.length, front.length + 1)), `${job} and ${other}`).toBe(false);
    }
});
