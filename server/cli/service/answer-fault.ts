// Whether an answer of the service is what this version expects, by the contract. Loaded only when
// the program has failed: an answer that fits is not blamed for a fault of ours.

import type { ZodError } from 'zod';
import { apiRoutes } from '../../contract/api/index.ts';
import type { RouteRow } from '../../contract/api/row.ts';
import type { ReadAnswer } from './asked.ts';

const rows = Object.values(apiRoutes).flatMap((group): readonly RouteRow[] => Object.values(group));

/** A newer service has members that this version does not know. */
const firstIssue = ({ issues }: ZodError): string | undefined => {
  const issue = issues.find(({ code }) => code !== 'unrecognized_keys');
  return issue === undefined ? undefined : `${issue.path.join('.') || 'the answer'}: ${issue.message}`;
};

/** What is wrong with the latest answer that does not fit; undefined: all of them fit. */
export const answerFault = (answers: readonly ReadAnswer[]): string | undefined => {
  for (const { operation, body } of answers.toReversed()) {
    const row = rows.find(({ method, path }) => method === operation.method && path === operation.path);
    const parsed = row?.answer?.safeParse(body);
    const fault = parsed?.error === undefined ? undefined : firstIssue(parsed.error);
    if (fault !== undefined) return `${operation.method.toUpperCase()} ${operation.path}: ${fault}`;
  }
  return undefined;
};
