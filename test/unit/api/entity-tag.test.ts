// If-Match: what admits a change.
import { expect, test } from 'vitest';
import { entityTag, matches } from '../../../server/fronts/api/entity-tag.ts';

const tag = entityTag({ name: 'a' });
test.each([
  ['the tag', tag, true],
  ['one of a list', `"other", ${tag}`, true],
  ['any', '*', true],
  ['the tag that a proxy has marked as weak', `W/${tag}`, true],
  ['one of a list, weak', `W/"other",W/${tag}`, true],
  ['another tag', entityTag({ name: 'b' }), false],
  ['another tag, weak', `W/${entityTag({ name: 'b' })}`, false],
  ['nothing', '', false],
])('%s', (_, ifMatch, expected) => {
  expect(matches(ifMatch, tag)).toBe(expected);
});
