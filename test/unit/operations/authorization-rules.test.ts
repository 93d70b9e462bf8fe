// Secondary authorization: which rule decides about a request.

import { describe, expect, test } from 'vitest';
import {
  type AuthorizationRule,
  countSearches,
  decideByRules,
  denyingRule,
  type RequestOrigin,
} from '../../../server/domain/authorization-rule.ts';
import { compileWildcard } from '../../../server/domain/wildcard.ts';
import { checkRules } from '../../../server/operations/endpoints/endpoint-settings.ts';
import { administrator } from '../../support/open-service.ts';
import fc from '../../support/property.ts';
import { sharedService } from '../../support/shared.ts';

const opened = sharedService();

const origin: RequestOrigin = {
  kmsOperation: 'Encrypt',
  awsPrincipalArn: 'arn:aws:iam::111122223333:role/app/writer',
  kmsKeyArn: 'arn:aws:kms:eu-central-1:444455556666:key/1234abcd',
  awsSourceVpc: 'vpc-1234',
  awsSourceVpce: undefined,
  kmsViaService: undefined,
};
const rule = (effect: 'allow' | 'deny', when: AuthorizationRule['when'], name: string = effect): AuthorizationRule => ({
  name,
  effect,
  when,
});

describe('a pattern', () => {
  test.each([
    ['*', '', true],
    ['', '', true],
    ['', 'a', false],
    ['a*c', 'abbbc', true],
    ['a*c', 'abbb', false],
    ['*a*b*', 'xxaxxbxx', true],
    ['*ab', 'aab', true],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['A', 'a', false],
    ['arn:aws:iam::*:role/app/*', 'arn:aws:iam::1:role/app/x/y', true],
    ['.*', 'abc', false],
  ])('%s and %s: %s', (pattern, text, fits) => {
    expect(compileWildcard(pattern)(text)).toBe(fits);
  });

  test.each([
    ['arn:aws:iam::*:role/admin', 'arn:aws:iam::1:role/admin', true],
    // A path of a role may have colons.
    ['arn:aws:iam::*:role/admin', 'arn:aws:iam::666:role/x:role/admin', false],
    ['arn:*:role/admin', 'arn:aws:iam::1:role/admin', true],
    ['arn:aws:iam::1:role/a:*', 'arn:aws:iam::1:role/a:b/c', true],
    ['arn:aws:kms:*:1:key/2', 'arn:aws:kms:eu:1:key/2', true],
    ['arn:aws:kms:*:1:key/2', 'arn:aws:kms:eu:3:key:1:key/2', false],
    // Each field counts.
    ['arn:aws:iam::1:role/admin', 'arn:aws:iam::2:role/admin', false],
    ['arn:aws:iam::1:role/admin', 'arn:aws-cn:iam::1:role/admin', false],
    ['arn:aws:iam::1:role/admin', 'arn:aws:sts::1:role/admin', false],
    ['arn:aws:kms:eu:1:key/2', 'arn:aws:kms:us:1:key/2', false],
    ['*', 'arn:aws:iam::1:role/admin', true],
    ['arn:aws:iam::1:*', 'no arn', false],
  ])('of an ARN stays within its fields: %s and %s: %s', (pattern, text, fits) => {
    for (const subject of ['principal', 'key'] as const) {
      const decided = denyingRule([rule('allow', { [subject]: [pattern] }), rule('deny', {})], {
        ...origin,
        awsPrincipalArn: text,
        kmsKeyArn: text,
      });
      expect(decided === undefined).toBe(fits);
    }
  });

  test('with long pieces agrees with a regular expression, also across words of 32 places', () => {
    const long = fc.string({ unit: fc.constantFrom('a', 'b', '?'), minLength: 28, maxLength: 70 });
    fc.assert(
      fc.property(long, long, fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 40 }), (one, two, between) => {
        const pattern = `*${one}*${two}*`;
        const expression = new RegExp(`^${pattern.replaceAll('*', '.*').replaceAll('?', '.')}$`);
        const text = `${between}${one.replaceAll('?', 'b')}${between}${two.replaceAll('?', 'a')}`;
        for (const each of [text, text.slice(1), text.slice(0, -1), `${between}${two}`.replaceAll('?', 'a')])
          expect([each, compileWildcard(pattern)(each)]).toEqual([each, expression.test(each)]);
      }),
    );
  });

  test('agrees with a regular expression of the same meaning', () => {
    const piece = fc.constantFrom('a', 'b', '*', '?');
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join('')),
        fc.array(fc.constantFrom('a', 'b'), { maxLength: 8 }).map((pieces) => pieces.join('')),
        (pattern, text) => {
          const expression = new RegExp(`^${pattern.replaceAll('*', '.*').replaceAll('?', '.')}$`);
          expect(compileWildcard(pattern)(text)).toBe(expression.test(text));
        },
      ),
      { numRuns: 2000 },
    );
  });
});

test('patterns that search a text are counted, by fields where they are ARNs', () => {
  const count = (when: AuthorizationRule['when']) => countSearches([rule('deny', when)]);
  expect(count({ principal: ['arn:aws:iam::*:role/app/*', '*', 'a*b'], vpc: ['vpc-1', 'vpc-*', '*-1'] })).toBe(0);
  expect(count({ principal: ['arn:aws:iam::1:*/app/*'], vpc: ['*a*', '*a*b*'], operation: ['**', '*?*'] })).toBe(4);
});

test('more patterns that search than requests have time for are refused, in settings and in a trial', async () => {
  const rules = (count: number) => [rule('deny', { vpc: ['*', ...Array.from({ length: count }, () => '*a*')] })];
  const refused = { code: 'validation', message: expect.stringMatching(/^101 patterns/) };
  const { vaults, keys, endpoints } = opened.operations;
  const vault = await vaults.create(administrator, { name: 'vault of rules' });
  const key = await keys.create(administrator, { name: 'key of rules', vaultId: vault.id });
  const create = (count: number) =>
    endpoints.create(administrator, {
      ...{ name: `endpoint ${count}`, vaultId: vault.id, keyId: key.id },
      settings: { rules: rules(count) },
    });
  await expect(create(101)).rejects.toMatchObject(refused);
  const { id } = await create(100);
  const requests = [origin];
  await expect(endpoints.simulateRules(administrator, id, { rules: rules(101), requests })).rejects.toMatchObject(
    refused,
  );
  expect(await endpoints.simulateRules(administrator, id, { requests })).toMatchObject([{ effect: 'deny' }]);
  // What an earlier version took stays, and does not keep the rest of the endpoint from changes.
  expect(() => checkRules(rules(120), rules(120))).not.toThrow();
  expect(() => checkRules(rules(121), rules(120))).toThrow(/^121 patterns/);
});

describe('the first rule that fits decides', () => {
  test('no rule: allowed', () => {
    expect(denyingRule([], origin)).toBeUndefined();
  });

  test('a rule without subjects fits everything', () => {
    expect(denyingRule([rule('deny', {})], origin)).toBe('deny');
  });

  test('an earlier allow keeps a later deny away, and the other way round', () => {
    const allow = rule('allow', { account: ['111122223333'] });
    expect(denyingRule([allow, rule('deny', {})], origin)).toBeUndefined();
    expect(denyingRule([rule('deny', {}), allow], origin)).toBe('deny');
  });

  test.each([
    ['principal', 'arn:aws:iam::111122223333:role/app/*'],
    ['account', '111122223333'],
    ['key', 'arn:aws:kms:*:444455556666:key/*'],
    ['region', 'eu-central-?'],
    ['operation', 'Enc*'],
    ['vpc', 'vpc-1234'],
  ])('%s is compared', (subject, pattern) => {
    expect(denyingRule([rule('deny', { [subject]: [pattern] })], origin)).toBe('deny');
    expect(denyingRule([rule('deny', { [subject]: [`${pattern}x`] })], origin)).toBeUndefined();
  });

  test('every subject must fit, by any of its patterns', () => {
    const both = rule('deny', { account: ['1', '111122223333'], region: ['us-*'] });
    expect(denyingRule([both], origin)).toBeUndefined();
    expect(denyingRule([rule('deny', { ...both.when, region: ['us-*', 'eu-*'] })], origin)).toBe('deny');
  });

  test('what a request does not tell fits no pattern', () => {
    expect(denyingRule([rule('deny', { viaService: ['*'] })], origin)).toBeUndefined();
    expect(denyingRule([rule('allow', { vpcEndpoint: ['*'] }), rule('deny', {})], origin)).toBe('deny');
  });
});

describe('why a rule decides', () => {
  test('the rules before it are named with the first subject that did not fit, and what the request told of it', () => {
    const rules = [
      rule('deny', { viaService: ['*'] }, 'no services'),
      rule('deny', { account: ['1'], region: ['us-*'] }, 'another account'),
      rule('allow', { region: ['eu-*'] }, 'Europe'),
      rule('deny', {}, 'no one else'),
    ];
    expect(decideByRules(rules, origin)).toEqual({
      effect: 'allow',
      rule: 'Europe',
      passed: [
        { rule: 'no services', subject: 'viaService', value: null },
        { rule: 'another account', subject: 'account', value: '111122223333' },
      ],
    });
  });

  test('none fits: allowed, by no rule', () => {
    expect(decideByRules([rule('deny', { region: ['us-*'] })], origin)).toEqual({
      effect: 'allow',
      rule: null,
      passed: [{ rule: 'deny', subject: 'region', value: 'eu-central-1' }],
    });
  });

  test('it is what the proxy does, whatever the rules', () => {
    const pattern = fc.constantFrom('*', 'x', '111122223333', 'eu-*', 'Enc*');
    const when = fc.record(
      {
        account: fc.array(pattern, { minLength: 1 }),
        region: fc.array(pattern, { minLength: 1 }),
        vpc: fc.constant(['*']),
      },
      { requiredKeys: [] },
    );
    const rules = fc.array(fc.tuple(fc.constantFrom('allow' as const, 'deny' as const), when), { maxLength: 5 });
    fc.assert(
      fc.property(rules, (given) => {
        const list = given.map(([effect, each], index) => rule(effect, each, `rule ${index}`));
        const { effect, rule: name } = decideByRules(list, origin);
        expect(effect === 'deny' ? name : undefined).toBe(denyingRule(list, origin));
      }),
    );
  });
});
