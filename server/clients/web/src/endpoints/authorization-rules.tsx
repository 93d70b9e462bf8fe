// Rules of secondary authorization in words, and as the text in which they are written.

import type { AuthorizationRule } from '../api/types.ts';
import { Badge } from '../ui/page/state-badge.tsx';

export const subjectNames: Readonly<Record<keyof AuthorizationRule['when'], string>> = {
  principal: 'principal',
  account: 'account',
  key: 'key',
  region: 'region',
  operation: 'operation',
  vpc: 'VPC',
  vpcEndpoint: 'VPC endpoint',
  viaService: 'via service',
};

export const ruleExample = `[
  { "name": "not through lambda", "effect": "deny",
    "when": { "viaService": ["lambda.*.amazonaws.com"] } },
  { "name": "our account", "effect": "allow",
    "when": { "account": ["111122223333"] } },
  { "name": "all others", "effect": "deny", "when": {} }
]`;

const describeRule = ({ when }: AuthorizationRule): string => {
  const parts = Object.entries(when).map(
    ([subject, patterns = []]) =>
      `${subjectNames[subject as keyof AuthorizationRule['when']] ?? subject} ${[patterns].flat().join(' or ')}`,
  );
  return parts.length === 0 ? 'every request' : parts.join(', and ');
};

const isRule = (value: unknown): value is AuthorizationRule => {
  const { name, effect, when } = (value ?? {}) as { name?: unknown; effect?: unknown; when?: unknown };
  return typeof name === 'string' && typeof effect === 'string' && typeof when === 'object' && when !== null;
};

/** The rules in the text, or what is wrong with it. The service checks the content of `when`. */
export const readRules = (text: string): readonly AuthorizationRule[] | string => {
  if (text.trim() === '') return [];
  try {
    const rules: unknown = JSON.parse(text);
    if (!Array.isArray(rules)) return 'This is not a list. A list begins with [.';
    const wrong = rules.findIndex((rule: unknown) => !isRule(rule));
    return wrong < 0
      ? (rules as readonly AuthorizationRule[])
      : `Rule ${wrong + 1} needs a name, an effect (allow or deny) and when.`;
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : 'it cannot be read'}`;
  }
};

export const DecisionBadge = ({ effect }: { effect: AuthorizationRule['effect'] }) => (
  <Badge tone={effect === 'deny' ? 'danger' : 'ok'} icon={effect === 'deny' ? 'blocked' : 'active'}>
    {effect}
  </Badge>
);

export const RuleList = ({ rules }: { rules: readonly AuthorizationRule[] }) => (
  <ol className="space-y-1">
    {rules.map((rule, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: while they are written, two may have one name
      <li key={`${index} ${rule.name}`} className="flex flex-wrap items-baseline gap-2">
        <DecisionBadge effect={rule.effect} />
        <span className="font-medium">{rule.name}</span>
        <span className="min-w-0 wrap-anywhere text-muted">{describeRule(rule)}</span>
      </li>
    ))}
  </ol>
);
