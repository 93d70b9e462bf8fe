// What is wrong with a body, by the schema that the service checks it with: each form asks before
// it sends. A chunk of its own, loaded with the first form.

import './schemas-as-data.ts';
import { apiRoutes } from '../../../../contract/api/index.ts';
import type { RouteGroup, RouteRow } from '../../../../contract/api/row.ts';
import { describeIssues } from '../../../../contract/field-faults.ts';
import type { ApiCall, FieldFault } from './client.ts';

const rows: readonly RouteRow[] = Object.values<RouteGroup>(apiRoutes).flatMap((group) => Object.values(group));

/** A path with names in its place is one pattern; a row without names goes before one with them. */
const fits = (row: RouteRow, path: string): boolean => {
  const [own, asked] = [row.path.split('/'), path.split('/')];
  return own.length === asked.length && own.every((part, at) => part.startsWith('{') || part === asked[at]);
};
export const rowOf = ({ method, path }: Pick<ApiCall, 'method' | 'path'>): RouteRow | undefined => {
  const found = rows.filter((row) => row.method === method.toLowerCase() && fits(row, path));
  return found.find((row) => row.path === path) ?? found[0];
};

/** Faults in what the form has. Secrets are not checked here: the service judges them. */
export const bodyFaults = (call: ApiCall): readonly FieldFault[] => {
  const row = rowOf(call);
  if (row?.body === undefined) return [];
  const result = row.body.safeParse(call.body ?? {}, { reportInput: true });
  if (result.success) return [];
  const secrets = new Set(row.secrets);
  return describeIssues(result.error).filter(({ path }) => !secrets.has(path.split('.')[0] ?? ''));
};
