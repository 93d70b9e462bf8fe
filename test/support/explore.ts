// A small explicit-state model checker: it visits every state that a model can reach, breadth
// first, so that a counterexample is as short as it can be. Two states with the same key are the
// same state; a model may give one key to states that differ only in which node is which.

export interface Model<S> {
  readonly initial: S;
  /** Everything that can happen next, by name. */
  steps(state: S): Iterable<readonly [name: string, next: S]>;
  /** Which rule the state breaks. */
  broken(state: S): string | undefined;
  /** A state that must be reachable from every state. */
  readonly goal?: { readonly rule: string; isReached(state: S): boolean } | undefined;
  key(state: S): string;
}

export interface Explored {
  readonly states: number;
  readonly steps: number;
  /** The most steps that the shortest way to a state has. */
  readonly depth: number;
  /** Every state within the model's bounds was visited. */
  readonly complete: boolean;
  readonly counterexample: Counterexample | undefined;
}

export interface Counterexample {
  readonly rule: string;
  readonly steps: readonly string[];
}

export const explore = <S>(
  model: Model<S>,
  { mostStates = Number.POSITIVE_INFINITY, mostSteps = Number.POSITIVE_INFINITY } = {},
): Explored => {
  const { goal } = model;
  const seen = new Map<string, number>([[model.key(model.initial), 0]]);
  /**
   * For each state, the states from which a step leads to it; and (`reached`) those that are the
   * goal.
   */
  const sources: number[][] = [[]];
  const reached: number[] = goal?.isReached(model.initial) === true ? [0] : [];
  const parents: number[] = [-1];
  const names: string[] = ['start'];
  const wayTo = (at: number): string[] => {
    const way: string[] = [];
    for (let each = at; each > 0; each = parents[each] ?? 0) way.unshift(names[each] ?? '');
    return way;
  };
  let [steps, depth] = [0, 0];
  let level: { readonly at: number; readonly state: S }[] = [{ at: 0, state: model.initial }];
  const done = (complete: boolean, found?: { readonly rule: string; readonly at: number }): Explored => ({
    ...{ states: seen.size, steps, depth, complete },
    counterexample: found && { rule: found.rule, steps: wayTo(found.at) },
  });
  const first = model.broken(model.initial);
  if (first !== undefined) return done(false, { rule: first, at: 0 });
  while (level.length > 0) {
    if (depth >= mostSteps) return done(false);
    const next: typeof level = [];
    for (const { at, state } of level)
      for (const [name, after] of model.steps(state)) {
        steps += 1;
        const key = model.key(after);
        const known = seen.get(key);
        if (known !== undefined) {
          if (goal !== undefined) sources[known]?.push(at);
          continue;
        }
        const id = names.length;
        seen.set(key, id);
        parents.push(at);
        names.push(name);
        if (goal !== undefined) sources.push([at]);
        if (goal?.isReached(after) === true) reached.push(id);
        const rule = model.broken(after);
        if (rule !== undefined) return done(false, { rule, at: id });
        if (seen.size >= mostStates) return done(false);
        next.push({ at: id, state: after });
      }
    if (next.length > 0) depth += 1;
    level = next;
  }
  if (goal === undefined) return done(true);
  const leads = new Set(reached);
  for (const at of leads) for (const source of sources[at] ?? []) leads.add(source);
  const stuck = parents.findIndex((_, at) => !leads.has(at));
  return stuck < 0 ? done(true) : done(false, { rule: goal.rule, at: stuck });
};
