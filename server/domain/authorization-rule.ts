// Secondary authorization of a key store endpoint: rules about the origin that a signed request
// states (requestMetadata of the external key store proxy protocol). Rules are tried in order, the
// first that fits decides, and what none fits is allowed.

import { compileWildcard, hasSearch } from './wildcard.ts';

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

const fieldsBeforeResource = 5;
/**
 * The five fields of an ARN before its resource, and the resource, which may have colons; null: not
 * an ARN. A text of colons is as cheap as another one.
 */
const fieldsOfArn = (text: string): readonly string[] | null => {
  if (!text.startsWith('arn:')) return null;
  const fields: string[] = [];
  let from = 0;
  while (fields.length < fieldsBeforeResource) {
    const end = text.indexOf(':', from);
    if (end < 0) return null;
    fields.push(text.slice(from, end));
    from = end + 1;
  }
  return [...fields, text.slice(from)];
};

/** What a request states for a subject: read once, whatever the number of rules and patterns. */
interface Stated {
  readonly text: string;
  /** Null: not an ARN, or not of a subject whose patterns are ARNs. */
  readonly fields: readonly string[] | null;
}
type Pattern = (stated: Stated) => boolean;

/**
 * A pattern that is an ARN is compared field by field, as AWS does: `*` in the account does not
 * stand for an account and the path of a role there that ends like the resource of the pattern.
 */
const compilePattern = (pattern: string, isArn: boolean): Pattern => {
  const wanted = isArn ? fieldsOfArn(pattern)?.map(compileWildcard) : undefined;
  if (wanted !== undefined) return ({ fields }) => fields?.every((field, index) => wanted[index]?.(field)) === true;
  const fits = compileWildcard(pattern);
  return ({ text }) => fits(text);
};

/**
 * Patterns that search the text of a request, in all rules of an endpoint: the longest cost a
 * quarter of a millisecond each, and all that fit into one request of the API 10 ms, while every
 * other caller waits.
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
const compiled = new WeakMap<readonly string[], readonly Pattern[]>();
const compile = (patterns: readonly string[], isArn: boolean): readonly Pattern[] => {
  const known = compiled.get(patterns);
  if (known !== undefined) return known;
  const made = patterns.map((pattern) => compilePattern(pattern, isArn));
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

/** Reads each subject of the request once, when a rule asks for it. */
const readOrigin = (origin: RequestOrigin): ((subject: RuleSubject) => Stated | undefined) => {
  const known = new Map<RuleSubject, Stated | undefined>();
  return (subject) => {
    if (known.has(subject)) return known.get(subject);
    const text = tell[subject](origin);
    const stated = text === undefined ? undefined : { text, fields: isOfArn(subject) ? fieldsOfArn(text) : null };
    known.set(subject, stated);
    return stated;
  };
};

/** The first subject of the rule that the request does not fit; undefined when the rule fits. */
const firstMiss = ({ when }: AuthorizationRule, read: ReturnType<typeof readOrigin>): RuleSubject | undefined =>
  ruleSubjects.find((subject) => {
    const patterns = when[subject];
    if (patterns === undefined) return false;
    const stated = read(subject);
    return stated === undefined || !compile(patterns, isOfArn(subject)).some((fits) => fits(stated));
  });

/** The name of the rule that denies the request; undefined when it is allowed. */
export const denyingRule = (rules: readonly AuthorizationRule[], origin: RequestOrigin): string | undefined => {
  const read = readOrigin(origin);
  const first = rules.find((rule) => firstMiss(rule, read) === undefined);
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
  const read = readOrigin(origin);
  const passed: RuleDecision['passed'][number][] = [];
  for (const rule of rules) {
    const subject = firstMiss(rule, read);
    if (subject === undefined) return { effect: rule.effect, rule: rule.name, passed };
    passed.push({ rule: rule.name, subject, value: read(subject)?.text ?? null });
  }
  return { effect: 'allow', rule: null, passed };
};
