// Records of the audit log that decide something are read by operations/shared/tree-of-log.ts,
// which proves each of them against the root of the log: the row of a record alone can be changed
// from outside. Every other reader is in this table, with the reason why nothing is decided by it.
import { expect, test } from 'vitest';
import { files, read, withoutComments } from '../support/sources.ts';

const shows = 'shows what the log says; dke audit verify proves an export of it';
const deciding = 'server/operations/shared/tree-of-log.ts';
const readers: Readonly<Record<string, string>> = {
  [deciding]: 'proves what it reads',
  'server/adapters/diagnosis/run-endpoint-checks.ts': 'evidence of a diagnosis: removed credentials, by their names',
  'server/fronts/api/handlers/audit-handlers.ts': shows,
  'server/operations/access/recovered-tokens.ts':
    'whose act ends an alert, which a writer of the database can end in any case; the revocation is proven',
  'server/operations/approvals/former-names.ts': 'shows former names; an approval is bound to ids and the present name',
  'server/operations/audit/audit-origin.ts': 'the age of the first key, which notifications show',
  'server/operations/audit/compare-written.ts': 'compares each record with the tree that this node knows',
  'server/operations/audit/export-audit.ts': shows,
  'server/operations/audit/forwarded-items.ts': 'hands records on; sinks and verifiers compare the tree',
  'server/operations/audit/read-audit.ts': shows,
  'server/operations/audit/read-key-migrations.ts': shows,
  'server/operations/notifications/age-sources.ts': 'tells of an age',
  'server/operations/notifications/recent-records.ts': 'tells of recovered administrators and new certificates',
  'server/operations/notifications/service-sources.ts': 'tells of a late checkpoint',
  'server/operations/requests/request-minutes.ts':
    'compares the request log with the audit log, whose tree dke audit verify proves',
  'server/operations/search/find-in-logs.ts': shows,
  'server/operations/service/deadline-clock.ts':
    'a first start without a clock: the earlier of the last record and now, so that nothing is due sooner',
  'server/operations/service/verify-store.ts': 'compares each record with its hash, and the tree',
};

test('no record of the audit log decides anything that is not proven', () => {
  const found = files(['server'], '.ts').filter(
    (path) =>
      !/^server\/(?:clients|cli|adapters\/store)\//.test(path) && /\baudit\.list\(/.test(withoutComments(read(path))),
  );
  expect(found.filter((path) => readers[path] === undefined)).toEqual([]);
  expect(Object.keys(readers).filter((path) => !found.includes(path))).toEqual([]);
});
