// From the wire to what a handler is given: query, JSON body. Strict: unknown members, repeated
// members and query parameters, and anything that is not JSON are refused, and every wrong field is
// named.

import type { z } from '@hono/zod-openapi';
import { findJsonFault, isNestedDeeper } from '../../base/json-members.ts';
import { ServiceError } from '../../base/service-error.ts';
import { tenantParameter } from '../../contract/api/row.ts';
import { describeIssues } from '../../contract/field-faults.ts';
import { HttpRefusal, ValidationError } from './api-problem.ts';

/** Most items of one list or object in a body. The longest list that a request may have has 100. */
export const mostItems = 256;
/** Levels of a body; the deepest one of a request has six. */
const mostLevels = 32;

/**
 * More marks than this after one letter are not text of any language (Unicode Standard Annex 15,
 * Stream-Safe Text Format). Putting them in order takes time in proportion to the square of their
 * number.
 */
const tooManyMarks = /\p{M}{31}/u;
/** PostgreSQL has no such character in a text, and no name needs it. */
export const requireNoNul = (text: string): void => {
  if (text.includes('\0')) throw new ServiceError('validation', 'the character U+0000 is not allowed');
};

/** One form for each text, whichever way a keyboard composes its letters. */
const inFormNfc = (text: string): string => {
  requireNoNul(text);
  if (tooManyMarks.test(text))
    throw new ServiceError('validation', 'a letter has more than 30 combining marks', {
      hint: 'remove combining marks from the name',
    });
  return text.normalize('NFC');
};

const check = (schema: z.ZodObject, value: unknown): Record<string, unknown> => {
  // reportInput: tells a missing member from one of a wrong type; the input itself goes nowhere.
  const result = schema.safeParse(value, { reportInput: true });
  if (!result.success) throw new ValidationError(describeIssues(result.error));
  return result.data;
};

export const readQuery = (schema: z.ZodObject | undefined, url: string): Record<string, unknown> => {
  const parameters = new URL(url).searchParams;
  const all = [...parameters.keys()];
  const seen = new Set<string>();
  const repeated = new Set(all.filter((name) => seen.has(name) || !seen.add(name)));
  if (repeated.size > 0) {
    throw new ValidationError([...repeated].map((path) => ({ path, message: 'must appear only once' })));
  }
  // Parameters of every route are checked elsewhere: see authenticate.
  const names = all.filter((name) => name !== tenantParameter);
  if (schema !== undefined)
    return check(schema, Object.fromEntries(names.map((name) => [name, inFormNfc(parameters.get(name) ?? '')])));
  if (names.length > 0) throw new ValidationError(names.map((path) => ({ path, message: 'is unknown' })));
  return {};
};

const valueInFormNfc = (_name: string, value: unknown): unknown =>
  typeof value === 'string' ? inFormNfc(value) : value;

export const readJson = (
  schema: z.ZodObject | undefined,
  contentType: string | undefined,
  body: Buffer,
): Record<string, unknown> => {
  if (body.length === 0) return schema === undefined ? {} : check(schema, {});
  if (!/^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(contentType ?? '')) {
    throw new HttpRefusal('validation', 415, 'the media type of the body is not JSON', {
      hint: 'send Content-Type: application/json',
    });
  }
  if (isNestedDeeper(body, mostLevels))
    throw new ServiceError('validation', `the body is nested deeper than ${mostLevels} levels`, {
      hint: '/api/openapi.json describes the body of this request',
    });
  let value: unknown;
  let text: string;
  try {
    text = inFormNfc(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
    // An escape is a character only after it is parsed.
    value = text.includes('\\u') ? JSON.parse(text, valueInFormNfc) : JSON.parse(text);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError('validation', 'the body is not valid JSON');
  }
  const fault = findJsonFault(text, mostItems);
  if (fault === 'too-many-items')
    throw new ServiceError('validation', `a list or an object in the body has more than ${mostItems} items`, {
      hint: 'send a shorter list; /api/openapi.json describes the body of this request',
    });
  if (fault !== undefined)
    throw new ValidationError([{ path: fault.repeated.slice(0, 200), message: 'must appear only once' }]);
  if (schema !== undefined) return check(schema, value);
  if (typeof value === 'object' && value !== null && Object.keys(value).length === 0) return {};
  throw new ServiceError('validation', 'this request must have no body');
};
