// Secondary authorization of a key store endpoint: rules about the origin that a signed request
// states (requestMetadata of the external key store proxy protocol). Rules are tried in order, the
// first that fits decides, and what none fits is allowed.

import { compileWildcard, hasSearch, type Wildcard } from './wildcard.ts';

/** What a rule can check. */
export const ruleSubjects = [
  /** awsPrincipalArn. */
  'principal',
  /** The account in awsPrincipalArn. */
  'account',
  /** kmsKeyArn. */
  'key',
  /** The region in kmsKeyArn. */
  'region',
  /** kmsOperation. */
  'operation',
  /** awsSourceVpc. */
  'vpc',
  /** awsSourceVpce. */
  'vpcEndpoint',
  /** kmsViaService. */
  'viaService',
] as const;
export type RuleSubject = (typeof ruleSubjects)[number];

export interface AuthorizationRule {
  /** Unique within the endpoint; shown in the request log. */
  readonly name: string;
  readonly effect: 'allow' | 'deny';
  /**
   * Each subject listed here must match one of its patterns: `*` matches any characters, `?`
   * matches one. A subject that the request does not state matches no pattern. A rule without
   * subjects matches every request.
   */
  readonly when: { readonly [S in RuleSubject]?: readonly string[] | undefined };
}

/** The members of requestMetadata that rules check. */
export interface RequestOrigin {
  readonly kmsOperation: string;
  readonly awsPrincipalArn: string | undefined;
  readonly kmsKeyArn: string | undefined;
  readonly awsSourceVpc: string | undefined;
  readonly awsSourceVpce: string | undefined;
  readonly kmsViaService: string | undefined;
}

/** Patterns of these subjects are ARNs. */
const isOfArn = (subject: RuleSubject): boolean => subject === 'principal' || subject === 'key';

/**
 * The five fields of an ARN before its resource, and the resource, which may have colons; null: not
 * an ARN.
 */
const fieldsOfArn = (text: string): readonly string[] | null => {
  const parts = text.split(':');
  return parts[0] === 'arn' && parts.length >= 6 ? [...parts.slice(0, 5), parts.slice(5).join(':')] : null;
};

/**
 * A pattern that is an ARN is compared field by field, as AWS does: `*` in the account does not
 * stand for an account and the path of a role there that ends like the resource of the pattern.
 */
export const compileArnPattern = (pattern: string): Wildcard => {
  const wanted = fieldsOfArn(pattern)?.map(compileWildcard);
  if (wanted === undefined) return compileWildcard(pattern);
  return (text) => fieldsOfArn(text)?.every((field, index) => wanted[index]?.(field)) === true;
};

/**
 * Patterns that search the text of a request, in all rules of an endpoint: each costs up to 50
 * microseconds, while every other caller waits.
 */
export const mostSearches = 100;

/** How many patterns of the rules search the text of a request. */
export const countSearches = (rules: readonly AuthorizationRule[]): number =>
  rules
    .flatMap(({ when }) =>
      ruleSubjects.flatMap((subject) =>
        (when[subject] ?? []).map((pattern) => (isOfArn(subject) ? (fieldsOfArn(pattern) ?? [pattern]) : [pattern])),
      ),
    )
    .filter((fields) => fields.some(hasSearch)).length;

/** Rules are compiled at their first use, and forgotten with them. */
const compiled = new WeakMap<readonly string[], readonly Wildcard[]>();
const compile = (patterns: readonly string[], isArn: boolean): readonly Wildcard[] => {
  const known = compiled.get(patterns);
  if (known !== undefined) return known;
  const made = patterns.map(isArn ? compileArnPattern : compileWildcard);
  compiled.set(patterns, made);
  return made;
};

/**
 * A field of an ARN (arn:partition:service:region:account:resource), or undefined when there is
 * none.
 */
const arnField = (arn: string | undefined, field: 3 | 4): string | undefined => arn?.split(':', 6)[field] || undefined;

const tell: { readonly [S in RuleSubject]: (origin: RequestOrigin) => string | undefined } = {
  principal: (origin) => origin.awsPrincipalArn,
  account: (origin) => arnField(origin.awsPrincipalArn, 4),
  key: (origin) => origin.kmsKeyArn,
  region: (origin) => arnField(origin.kmsKeyArn, 3),
  operation: (origin) => origin.kmsOperation,
  vpc: (origin) => origin.awsSourceVpc,
  vpcEndpoint: (origin) => origin.awsSourceVpce,
  viaService: (origin) => origin.kmsViaService,
};

/** The first subject of the rule that the request does not fit; undefined when the rule fits. */
const firstMiss = ({ when }: AuthorizationRule, origin: RequestOrigin): RuleSubject | undefined =>
  ruleSubjects.find((subject) => {
    const patterns = when[subject];
    if (patterns === undefined) return false;
    const text = tell[subject](origin);
    return text === undefined || !compile(patterns, isOfArn(subject)).some((fits) => fits(text));
  });
const fits = (rule: AuthorizationRule, origin: RequestOrigin): boolean => firstMiss(rule, origin) === undefined;

/** The name of the rule that denies the request; undefined when it is allowed. */
export const denyingRule = (rules: readonly AuthorizationRule[], origin: RequestOrigin): string | undefined => {
  const first = rules.find((rule) => fits(rule, origin));
  return first?.effect === 'deny' ? first.name : undefined;
};

/** What rules say to a request, and why. */
export interface RuleDecision {
  readonly effect: AuthorizationRule['effect'];
  /** The rule that decides; null: none fits, and that allows. */
  readonly rule: string | null;
  /**
   * The rules that were tried before it, in order, each with the subject that did not match and its
   * value in the request.
   */
  readonly passed: readonly {
    readonly rule: string;
    readonly subject: RuleSubject;
    /** Null: the request does not state it. */
    readonly value: string | null;
  }[];
}

export const decideByRules = (rules: readonly AuthorizationRule[], origin: RequestOrigin): RuleDecision => {
  const passed: RuleDecision['passed'][number][] = [];
  for (const rule of rules) {
    const subject = firstMiss(rule, origin);
    if (subject === undefined) return { effect: rule.effect, rule: rule.name, passed };
    passed.push({ rule: rule.name, subject, value: tell[subject](origin) ?? null });
  }
  return { effect: 'allow', rule: null, passed };
};
