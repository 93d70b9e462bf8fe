// The rules of the standard, checked on our library and on SoftHSM2 with the same calls: test/conformance/reference has the rules,
// and differences.ts each difference of a token, with its reason.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { presentTokens, startTokens, type Token } from '../support/token.ts';
import { type Bench, openBench } from './reference/bench.ts';
import { expectedOn, idleDifferences } from './reference/differences.ts';
import { lookAt, rules } from './reference/rules.ts';

test('a rule has a name of its own', () => {
  const names = rules.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});
test('every difference is one', () => {
  expect(idleDifferences()).toEqual([]);
});

describe.each(presentTokens)('%s', (name) => {
  let token: Token;
  let bench: Bench;
  beforeAll(async () => {
    token = await startTokens[name]('reference');
    bench = openBench(token);
  });
  afterAll(async () => {
    bench.end();
    await token.end();
  });
  test.each(rules.map((rule) => [rule.name, rule] as const))('%s', async (_, rule) => {
    expect(await lookAt(rule, bench)).toEqual(expectedOn(name, rule));
  });
});
