// Every step that databases of released versions take, oldest first. A released step is never
// edited: it does not use the declarations of the tables (tables/), which change after it.
// docs/decisions/0024-schema-of-released-versions.md says when one is needed.

import { ownedRecords } from './0002-owned-records.ts';
import { rulesOfKeys } from './0003-rules-of-keys.ts';
import { decisionRows } from './0004-decisions.ts';
import { codedRequests } from './0005-coded-requests.ts';
import { outsideCopies } from './0006-outside-copies.ts';
import { valuesUnderTheCode } from './0007-values-under-the-code.ts';
import { codedChanges } from './0008-coded-changes.ts';
import { bytewiseText } from './0009-bytewise-text.ts';
import { waysOfRequests } from './0010-ways-of-requests.ts';
import { tokenLabels } from './0011-token-labels.ts';
import type { SchemaMigration } from './migration.ts';

/** The schema of the first release. Nothing older is upgraded. */
export const baseline = '0001-baseline';

export const migrations: readonly SchemaMigration[] = [
  ownedRecords,
  rulesOfKeys,
  decisionRows,
  codedRequests,
  outsideCopies,
  valuesUnderTheCode,
  codedChanges,
  bytewiseText,
  waysOfRequests,
  tokenLabels,
];
