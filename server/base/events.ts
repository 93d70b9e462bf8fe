// Typed events between the parts of a service. Who emits one does not know who listens, so parts
// that follow each other in both directions need no reference to each other. Listeners run at once,
// in the order in which they were added. An event is not a question: a part that needs an answer,
// or has to wait for what follows, is given the other part instead.

/** `Values`: by the name of each event, what it tells. */
export interface Events<Values extends object> {
  on<Name extends keyof Values>(name: Name, listener: (value: Values[Name]) => void): void;
  /** Every listener is called, also after one that throws; what they threw is thrown afterwards. */
  emit<Name extends keyof Values>(name: Name, value: Values[Name]): void;
}

export type Emitter<Values extends object> = Pick<Events<Values>, 'emit'>;
export type Listening<Values extends object> = Pick<Events<Values>, 'on'>;

export const createEvents = <Values extends object>(): Events<Values> => {
  const listeners: { [Name in keyof Values]?: ((value: Values[Name]) => void)[] } = {};
  return {
    on: (name, listener) => {
      const own = listeners[name] ?? [];
      own.push(listener);
      listeners[name] = own;
    },
    emit: (name, value) => {
      const errors: unknown[] = [];
      for (const listener of listeners[name] ?? [])
        try {
          listener(value);
        } catch (error) {
          errors.push(error);
        }
      if (errors.length > 1) throw new AggregateError(errors, `listeners of ${String(name)} failed`);
      if (errors.length === 1) throw errors[0];
    },
  };
};
