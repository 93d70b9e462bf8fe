// What is wrong with the fields of a body, in words: the service says it of a request, the console
// before it sends one.

import type { z } from '@hono/zod-openapi';

interface FieldFault {
  readonly path: string;
  readonly message: string;
}

/**
 * Names the fields; never repeats a value, because a value may be a credential in the wrong place.
 */
export const describeIssues = (error: z.ZodError): readonly FieldFault[] =>
  error.issues.flatMap((issue): FieldFault[] => {
    const path = issue.path.join('.');
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({ path: [...issue.path, key].join('.').slice(0, 200), message: 'is unknown' }));
    }
    if (issue.code === 'invalid_type' && issue.input === undefined) return [{ path, message: 'is missing' }];
    return [{ path, message: issue.message }];
  });
