// Names of authorization rules: people read them in the console and the request log, so that they
// follow the rule for names. A rule of an earlier version stays valid while it is not changed.
import { expect, test } from 'vitest';
import type { AuthorizationRule } from '../../../server/domain/authorization-rule.ts';
import { defaultSettings } from '../../../server/domain/endpoint.ts';
import { checkRules } from '../../../server/operations/endpoints/endpoint-settings.ts';
import { administrator } from '../../support/open-service.ts';
import { sharedService } from '../../support/shared.ts';

const opened = sharedService();
const rule = (name: string): AuthorizationRule => ({ name, effect: 'deny', when: { operation: ['Decrypt'] } });
const deceptive = ['a\u202eb', 'a\u200bb', 'a\u00a0b', 'a  b', '\u3164'];

test('a rule that is new, changed or tried has a name that looks like no other', async () => {
  const { vaults, keys, endpoints } = opened.operations;
  const vault = await vaults.create(administrator, { name: 'of rules' });
  const key = await keys.create(administrator, { name: 'of rules', vaultId: vault.id });
  const given = { name: 'of rules', vaultId: vault.id, keyId: key.id };
  const { id } = await endpoints.create(administrator, { ...given, settings: { rules: [rule('a b')] } });
  for (const name of deceptive) {
    const rules = [rule('a b'), rule(name)];
    const refused = { code: 'validation', message: expect.stringContaining('a name must have') };
    await expect(
      endpoints.changeSettings(administrator, id, { ...defaultSettings, rules }),
      JSON.stringify(name),
    ).rejects.toMatchObject(refused);
    await expect(endpoints.simulateRules(administrator, id, { rules, requests: [] })).rejects.toMatchObject(refused);
    await expect(
      endpoints.create(administrator, { ...given, name: `of ${deceptive.indexOf(name)}`, settings: { rules } }),
    ).rejects.toMatchObject(refused);
  }
  expect((await endpoints.get(administrator, id)).settings.rules).toEqual([rule('a b')]);
});

test('a rule of an earlier version keeps its name until it is changed', () => {
  const before = deceptive.map(rule);
  checkRules([rule('a b'), ...before], before);
  const [first = rule('')] = before;
  expect(() => checkRules([{ ...first, effect: 'allow' }], before)).toThrow('a name must have');
  expect(() => checkRules([rule('a\u200b'), ...before], before)).toThrow('a name must have');
});
