// Reads the runbooks (runbooks/*.toml) once, at the start, and refuses to start with a file that is
// missing or wrong: a person follows what they say on a database. A step or a warning that several
// share is in shared.toml.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { z } from 'zod';
import { StartError } from '../../base/start-error.ts';
import {
  containerNames,
  evidenceNames,
  placeNames,
  places,
  type RunbookName,
  type RunbookRow,
  type Runbooks,
  releaseNames,
  runbookNames,
  type StepRow,
} from '../../domain/runbooks.ts';

export const runbookFolder = join(import.meta.dirname, 'runbooks');

const unknownPlace = (text: string): string | undefined =>
  [...text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name).find((name) => !placeNames.includes(name));

const text = z
  .string()
  .trim()
  .min(1)
  .refine((value) => unknownPlace(value) === undefined, {
    error: ({ input }) => `has the unknown place {${unknownPlace(String(input))}}: known are ${placeNames.join(', ')}`,
  });
const release = z.enum(releaseNames);
const evidence = z.enum(evidenceNames);
/** What is not of the specification names where it is from; what is inferred is from nowhere. */
const hasSource = (row: { readonly evidence: string; readonly source?: string | undefined }): boolean =>
  (row.evidence === 'oracle' || row.evidence === 'seen') === (row.source !== undefined);
const sourceFault = { error: 'needs a source with evidence "oracle" or "seen", and none with another' };
const warning = z.strictObject({ text, evidence, source: text.optional() }).refine(hasSource, sourceFault);

const stepMembers = {
  title: text,
  place: z.enum(places),
  text: text.optional(),
  warning: text.optional(),
  sql: text.optional(),
  shell: text.optional(),
  setting: text.optional(),
  expect: text.optional(),
  command: text.optional(),
  onlyAfter: z
    .string()
    .regex(/^ORA-\d{5}$/)
    .optional(),
  /** Every step has its grade. */
  evidence,
  source: text.optional(),
  releases: z.array(release).min(1).optional(),
  containers: z.enum(containerNames).optional(),
};
const id = z.string().regex(/^[a-z0-9]+(-[a-z0-9]+)*$/);
const step = z.strictObject({ id, ...stepMembers });
const usedStep = step.partial().extend({ use: id });
const ownStep = step.refine(hasSource, sourceFault);

const shared = z.strictObject({ warnings: z.record(id, warning), steps: z.record(id, ownStep) });
const runbook = z.strictObject({
  title: text,
  summary: text,
  downtime: z.boolean(),
  releases: z.array(release).min(1).default(releaseNames),
  byContainers: z.boolean(),
  warnings: z.array(z.union([id, warning])),
  steps: z.array(z.union([usedStep, ownStep])).min(3),
});

const readToml = <T>(folder: string, name: string, schema: z.ZodType<T>): T => {
  const path = join(folder, `${name}.toml`);
  const wrong = (why: string, cause?: unknown) =>
    new StartError('internal', `the runbook file ${path} ${why}; install the package again`, { cause });
  let content: unknown;
  try {
    content = parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw wrong(`cannot be read: ${(error as Error).message}`, error);
  }
  // Once a start: to compile a schema takes longer than to walk through it.
  const { data, error } = schema.safeParse(content, { jitless: true });
  if (error !== undefined) throw wrong(`is not valid: ${z.prettifyError(error)}`);
  return data;
};

/** Throws a StartError that names the file. */
export const readRunbooks = (folder = runbookFolder): Runbooks => {
  const common = readToml(folder, 'shared', shared);
  const taken = <T>(rows: Readonly<Record<string, T>>, name: string, by: string): T => {
    const row = rows[name];
    if (row === undefined)
      throw new StartError('internal', `the runbook "${by}" takes "${name}", which shared.toml does not have`);
    return row;
  };
  const read = (name: RunbookName): RunbookRow => {
    const { warnings, steps, ...row } = readToml(folder, name, runbook);
    return {
      ...row,
      warnings: warnings.map((each) => (typeof each === 'string' ? taken(common.warnings, each, name) : each)),
      steps: steps.map((each) => {
        if (!('use' in each)) return each as StepRow;
        const { use, ...own } = each;
        return { ...taken(common.steps, use, name), ...own } as StepRow;
      }),
    };
  };
  return Object.fromEntries(runbookNames.map((name) => [name, read(name)])) as unknown as Runbooks;
};
