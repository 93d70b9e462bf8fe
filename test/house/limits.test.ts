// One limiter: what a limit refuses names the limit, so that the front that answers it counts it
// and says when to ask again (server/base/limit-refusals.ts). Kinds of refusals:
// test/scenario/limits.test.ts.
import { expect, test } from 'vitest';
import { files, read, withoutComments } from '../support/sources.ts';

const server = files(['server'], '.ts').map((path) => ({ path, text: withoutComments(read(path)) }));
const withText = (pattern: RegExp): string[] => server.filter(({ text }) => pattern.test(text)).map(({ path }) => path);

test('only LimitRefused is the refusal of a limit', () => {
  expect(withText(/\((?:\s*)'rate-limited'/)).toEqual(['server/base/limit-refusals.ts']);
});

test('each front that answers errors of operations counts those of limits', () => {
  expect(withText(/\bcountRefusal\(/)).toEqual([
    'server/fronts/api/api-front.ts',
    'server/fronts/closed.ts',
    'server/fronts/tde/tde-front.ts',
  ]);
});
