// The rules of the standard, checked on our library and on SoftHSM2 with the same calls, which
// graphene-pk11 makes where it can express them: test/conformance/reference has the rules, and
// differences.ts each difference of a token, with its reason.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { grapheneFunctions } from '../support/graphene-calls.ts';
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
    bench = openBench(token, 'graphene');
  });
  afterAll(async () => {
    bench.end();
    await token.end();
  });
  test.each(rules.map((rule) => [rule.name, rule] as const))('%s', async (_, rule) => {
    expect(await lookAt(rule, bench)).toEqual(expectedOn(name, rule));
  });
  test('graphene-pk11 made the calls of every function that it has, and pkcs11js what the page says', () => {
    const ways = (each: string) => bench.ways.get(each) ?? new Map<string, number>();
    expect(grapheneFunctions.filter((each) => !ways(each).has('graphene'))).toEqual([]);
    // An example of a reason is a rule; most calls of each function are graphene's.
    const total = (each: string): number => [...ways(each).values()].reduce((sum, count) => sum + count, 0);
    expect(grapheneFunctions.filter((each) => (ways(each).get('graphene') ?? 0) * 2 < total(each))).toEqual([]);
  });
});
