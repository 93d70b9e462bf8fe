// One row a command: the route of the contract that it calls, its words and its help. The rest
// follows from the contract: the arguments are the parameters of the path, in order, and then
// members of the body or the query; so are the options. A word such as <vault> takes an id or a
// name. `act` is for commands that do more than one call, with the types of their options.

import { type Command, Option } from 'commander';
import type { AnswerOf, BodyOf, Input, InputOf, Operation } from '../../clients/typescript/operation.ts';
import type { CommandError } from '../terminal/exit-codes.ts';
import { type Columns, confirm, type Output } from '../terminal/output.ts';
import { exportTo } from '../terminal/secret-files.ts';
import type { ApiCall } from './api-client.ts';
import { type Caller, nameableOf, openCaller, outputOf, type SecretAnswer, showSecret } from './caller.ts';
import { globalsOf } from './context-file.ts';

interface Named {
  readonly name: string;
}

interface FlagMore {
  readonly help: string;
  readonly required?: true;
  readonly default?: string;
  readonly choices?: readonly string[];
  /** Throws InvalidArgumentError. */
  readonly parse?: (text: string) => string;
}
/** Options as commander writes them (`--tag <tag...>`), with their help. */
type Flags = Readonly<Record<string, string | FlagMore>>;

type Camel<S extends string> = S extends `${infer Head}-${infer Rest}` ? `${Head}${Capitalize<Camel<Rest>>}` : S;
type NameOf<F> = F extends `--no-${infer N}` ? Camel<N> : F extends `--${infer N} <${string}>` ? Camel<N> : LongOf<F>;
type LongOf<F> = F extends `--${infer N}` ? Camel<N> : never;
type ValueOf<F, M> = F extends `--no-${string}`
  ? false
  : F extends `${string}...>`
    ? readonly string[]
    : F extends `${string}>`
      ? M extends { readonly choices: readonly (infer C)[] }
        ? C
        : string
      : true;
type Always = { readonly required: true } | { readonly default: string };
export type Given<F extends Flags> = {
  readonly [K in keyof F as NameOf<K>]: ValueOf<K, F[K]> | (F[K] extends Always ? never : undefined);
};

/** What a row adds to the request that its words make. */
interface Also<R extends Operation> {
  readonly path?: InputOf<R>['path'];
  readonly query?: ApiCall<R>['query'];
  readonly body?: { readonly [K in keyof BodyOf<R>]?: BodyOf<R>[K] | undefined };
}
type ItemOf<A> = A extends { readonly items: readonly (infer T)[] } ? T : never;

interface RowMore<R extends Operation, F extends Flags, C extends Operation, T> {
  readonly options?: F;
  /** Members of the request whose options have another name. */
  readonly as?: Readonly<Record<string, string>>;
  readonly also?: (caller: Caller, options: Given<F>, ...values: readonly string[]) => Also<R> | Promise<Also<R>>;
  /** Asks for the name of the thing first; the answer of the first row has it. */
  readonly confirm?: readonly [C, say: (thing: AnswerOf<C>, path: Readonly<Record<string, unknown>>) => string];
  /** Asks for a name first, with what the dry run of the same operation says. */
  readonly plan?: {
    readonly name: (planned: AnswerOf<R>) => string;
    readonly say: (planned: AnswerOf<R>) => string;
    /** What a dry run shows of the answer; all of it when absent. */
    readonly value?: (planned: AnswerOf<R>) => object;
    /** Shows a dry run to people otherwise. */
    readonly show?: (output: Output, planned: AnswerOf<R>) => void;
  };
  /** The answer has what is shown only once: it can go into a file. */
  readonly secret?: (answer: AnswerOf<R>, options: Given<F>, caller: Caller) => SecretAnswer | Promise<SecretAnswer>;
  /** What these options ask for has no secret. */
  readonly noSecret?: (options: Given<F>) => boolean;
  /** What the answer says is wrong. It is shown before the command ends with this. */
  readonly fault?: (answer: AnswerOf<R>) => CommandError | undefined;
  /** What is shown of the answer; all of it when absent. */
  readonly value?: (answer: AnswerOf<R>) => object;
  readonly page?: (answer: AnswerOf<R>) => { readonly items: readonly T[] };
  /** Shows a list as a table. */
  readonly columns?: Columns<NoInfer<T>>;
  /** Shows it to people, otherwise than as a record or a table. */
  readonly text?: (output: Output, answer: AnswerOf<R>) => void;
}

export interface Noun {
  readonly command: Command;
  noun(name: string, summary: string): Noun;
  row<R extends Operation, const F extends Flags, C extends Operation<Input, Named>, T = ItemOf<AnswerOf<R>>>(
    route: R,
    usage: string,
    description: string,
    more?: RowMore<R, F, C, T>,
  ): Command;
  /** Arguments and options that name a thing are its id when `handle` gets them. */
  act<const F extends Flags>(
    usage: string,
    description: string,
    flags: F,
    handle: (caller: Caller, options: Given<F>, ...values: readonly string[]) => Promise<void>,
  ): Command;
  /** On this host, without the service. */
  local<const F extends Flags>(
    usage: string,
    description: string,
    flags: F,
    handle: (output: Output, options: Given<F>, ...values: readonly string[]) => Promise<void> | void,
  ): Command;
}

export const pagingFlags = {
  '--limit <count>': { help: 'maximum number of items, 1 to 1000', default: '100' },
  '--after <cursor>': 'continue after this cursor of the last page',
} as const;

/** Options of commands whose answer has a secret. */
export const secretFlags = {
  '--out <file>': 'write the secret into this new file (mode 600) instead of showing it',
  '--force': 'overwrite the file',
} as const;

/** The option of commands that run on the host of the service. */
export const configFlag = {
  '--config <file>': 'configuration of the service; default: ./dke.toml, or /etc/dke/dke.toml, if it exists',
} as const;
export const passphraseFlag = {
  '--passphrase-file <file>': 'with the passphrase that opens the root key (mode 600)',
} as const;

export const addFlags = (command: Command, flags: Flags): Command => {
  for (const [flag, about] of Object.entries(flags)) {
    const more: FlagMore = typeof about === 'string' ? { help: about } : about;
    const option = new Option(flag, more.help).makeOptionMandatory(more.required === true);
    if (more.choices !== undefined) option.choices(more.choices);
    if (more.default !== undefined) option.default(more.default);
    if (more.parse !== undefined) option.argParser(more.parse);
    command.addOption(option);
  }
  return command;
};

const camel = (text: string): string => text.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
/** The word of its value: `file` of `--out <file>`. */
export const valueWord = (option: Option): string => /<([^>.]+)/.exec(option.flags)?.[1] ?? '';

type Place = readonly ['path' | 'query' | 'body', string];

/** Where in the request a word goes: an argument, or an option with the word of its value. */
const placeOf = (
  route: Operation,
  name: string,
  word: string,
  as: RowMore<Operation, Flags, Operation, never>['as'],
): Place | undefined => {
  const given = as?.[name];
  for (const part of ['body', 'query'] as const)
    for (const each of given === undefined ? [name, `${name}Id`, camel(word), `${camel(word)}Id`] : [given])
      if (each !== '' && route[part] !== undefined && each in route[part]) return [part, each];
  return undefined;
};

/** The values that the contract lists for a member. */
const choicesOf = (route: Operation, [part, name]: Place): readonly string[] | undefined =>
  part === 'path' ? undefined : (route[part]?.[name] ?? undefined);

/** The service may know more values than this command: they are offered, and not required. */
const candidates = new WeakMap<Option, readonly string[]>();
export const candidatesOf = (option: Option): readonly string[] | undefined =>
  option.argChoices ?? candidates.get(option);

/** Parameters of the path for the arguments: by name, then in order. */
const parametersOf = (route: Operation, words: readonly string[]): ReadonlyMap<string, string> => {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const found = new Map(
    words.flatMap((word) => {
      const name = names.find((each) => each === camel(word) || each === `${camel(word)}Id`);
      return name === undefined ? [] : [[word, name] as const];
    }),
  );
  const left = names.filter((name) => ![...found.values()].includes(name));
  for (const word of words) {
    const name = found.has(word) ? undefined : left.shift();
    if (name !== undefined) found.set(word, name);
  }
  return found;
};

/** The options that a row has of itself, and that are not part of the request. */
const exportFlags = { '--out <file>': 'write to this new file' } as const;
const confirmFlags = { '--confirm <name>': 'the name, to skip the question' } as const;
const dryRunFlags = { '--dry-run': 'show the effects and the required approvals, and change nothing' } as const;

interface OwnOptions {
  readonly confirm?: string;
  readonly dryRun?: true;
  readonly out?: string;
  readonly bundle?: string;
  readonly force?: boolean;
}
type Request = Record<Place[0], Record<string, unknown>>;

/**
 * Asks before something is changed that cannot be undone; false: that was all, because it was a dry
 * run.
 */
const askFirst = async <R extends Operation, F extends Flags, C extends Operation<Input, Named>, T>(
  { call, output }: Caller,
  route: R,
  request: Request,
  { confirm: read, plan }: RowMore<R, F, C, T>,
  { confirm: name, dryRun }: OwnOptions,
): Promise<boolean> => {
  if (plan !== undefined) {
    const query = { ...request.query, dryRun: 'true' };
    const planned = await call(route, { ...request, query } as ApiCall<R>);
    if (dryRun === true) {
      if (output.raw || plan.show === undefined) output.record(plan.value?.(planned) ?? (planned as object));
      else plan.show(output, planned);
      return false;
    }
    await confirm(plan.say(planned), plan.name(planned), name);
    if (route.body !== undefined && 'confirm' in route.body) request.body.confirm = plan.name(planned);
  } else if (read !== undefined && dryRun !== true) {
    const [row, say] = read;
    const thing = await call(row, { path: request.path } as ApiCall<C>);
    await confirm(say(thing, request.path), (thing as Named).name, name);
  }
  return true;
};

/** Calls, and shows the answer. */
const carryOut = async <R extends Operation, F extends Flags, C extends Operation<Input, Named>, T>(
  caller: Caller,
  route: R,
  input: ApiCall<R>,
  more: RowMore<R, F, C, T>,
  options: Given<F> & OwnOptions,
): Promise<void> => {
  const { call, stream, output } = caller;
  const { secret, fault } = more;
  if (route.streams !== undefined) return exportTo(options.out, (into) => stream(route, input, into));
  if (secret !== undefined)
    return showSecret(
      output,
      { ...options, out: options.bundle ?? options.out },
      {
        operation: route,
        none: more.noSecret?.(options) ?? false,
        ask: () => call(route, input),
        read: (answer) => secret(answer, options, caller),
      },
    );
  const answer = await call(route, input);
  if (options.dryRun === true && more.confirm !== undefined)
    output.record((answer as { readonly plan?: object }).plan ?? {});
  else if (more.text !== undefined && !output.raw) more.text(output, answer);
  else if (more.columns !== undefined) output.list(more.page?.(answer) ?? (answer as never), more.columns);
  else output.record(more.value?.(answer) ?? (answer as object));
  const found = fault?.(answer);
  if (found !== undefined) throw found;
};

export const nounOf = (parent: Command): Noun => {
  const act: Noun['act'] = (usage, description, flags, handle) => {
    const made = addFlags(parent.command(usage).description(description), flags);
    return made.action(async (...received: readonly unknown[]) => {
      const caller = openCaller(globalsOf(made));
      const resolve = async (word: string, value: unknown): Promise<unknown> => {
        const kind = nameableOf(word);
        if (kind === undefined) return value;
        if (Array.isArray(value)) return Promise.all(value.map((each: string) => caller.resolve(kind, each)));
        return typeof value === 'string' ? caller.resolve(kind, value) : value;
      };
      const values: unknown[] = [];
      for (const [index, argument] of made.registeredArguments.entries()) {
        const value = received[index];
        // Several words are one text.
        values.push(await resolve(argument.name(), Array.isArray(value) ? value.join(' ') : value));
      }
      const options: Record<string, unknown> = { ...made.opts() };
      for (const option of made.options) {
        const name = option.attributeName();
        if (name in options) options[name] = await resolve(valueWord(option), options[name]);
      }
      await handle(caller, options as Parameters<typeof handle>[1], ...(values as readonly string[]));
    });
  };

  const row: Noun['row'] = (route, usage, description, more = {}) => {
    if ((route.showsOnce !== undefined) !== (more.secret !== undefined))
      throw new TypeError(`${usage}: only an operation that shows a secret has one, and its command says which`);
    const asks = more.confirm !== undefined || more.plan !== undefined;
    const own: Flags = {
      ...(more.secret === undefined ? {} : secretFlags),
      ...(route.streams === undefined ? {} : exportFlags),
      ...(asks ? confirmFlags : {}),
      ...(asks && route.query !== undefined && 'dryRun' in route.query ? dryRunFlags : {}),
    };
    const isOwn = (option: Option): boolean => option.flags in own;
    const flags = {
      ...(route.query !== undefined && 'after' in route.query ? pagingFlags : {}),
      ...more.options,
      ...own,
    } as NonNullable<typeof more.options>;
    const made: Command = act(usage, description, flags, async (caller, options, ...values) => {
      const request = { path: {}, query: {}, ...(route.body === undefined ? {} : { body: {} }) } as Request;
      const put = ([part, name]: Place, value: unknown): void => {
        if (value !== undefined) request[part][name] = part === 'query' && value === true ? 'true' : value;
      };
      for (const [place, value] of argumentPlaces.map((place, index) => [place, values[index]] as const))
        if (place) put(place, value);
      for (const [name, place] of optionPlaces) if (place) put(place, (options as Record<string, unknown>)[name]);
      const also = await more.also?.(caller, options, ...values);
      for (const part of ['path', 'query', 'body'] as const)
        for (const [name, value] of Object.entries(also?.[part] ?? {})) put([part, name], value);
      const given = options as typeof options & OwnOptions;
      if (!(await askFirst(caller, route, request, more, given))) return;
      // The dry run is the only one of the row's own options that is a part of the request.
      if (given.dryRun === true && more.confirm !== undefined) request.query.dryRun = 'true';
      await carryOut(caller, route, request as unknown as ApiCall<typeof route>, more, given);
    });
    const words = made.registeredArguments.map((argument) => argument.name());
    const parameters = parametersOf(route, words);
    const argumentPlaces = words.map((word): Place | undefined => {
      const parameter = parameters.get(word);
      return parameter === undefined ? placeOf(route, camel(word), '', more.as) : ['path', parameter];
    });
    for (const [index, place] of argumentPlaces.entries()) {
      const choices = place === undefined ? undefined : choicesOf(route, place);
      if (choices !== undefined) made.registeredArguments[index]?.choices(choices);
    }
    const optionPlaces = made.options
      .filter((option) => !isOwn(option))
      .map(
        (option) =>
          [option.attributeName(), placeOf(route, option.attributeName(), valueWord(option), more.as)] as const,
      );
    for (const option of made.options) {
      const [, place] = optionPlaces.find(([name]) => name === option.attributeName()) ?? [];
      const choices = place === undefined || option.isBoolean() ? undefined : choicesOf(route, place);
      if (choices !== undefined) candidates.set(option, choices);
    }
    // A word that leads nowhere is a mistake in the row, unless the row itself says what it means.
    const lost = [...optionPlaces, ...argumentPlaces.map((place, index) => [words[index], place] as const)].find(
      ([, place]) => place === undefined,
    );
    if (lost !== undefined && more.also === undefined && more.secret === undefined)
      throw new TypeError(`${usage}: ${lost[0]} is not part of ${route.method} ${route.path}`);
    return made;
  };

  const local: Noun['local'] = (usage, description, flags, handle) => {
    const made = addFlags(parent.command(usage).description(description), flags);
    return made.action((...received: readonly unknown[]) =>
      handle(
        outputOf(made),
        made.opts() as Parameters<typeof handle>[1],
        ...(received.slice(0, -2) as readonly string[]),
      ),
    );
  };

  return { command: parent, row, act, local, noun: (name, summary) => addNoun(parent, name, summary) };
};

export const addNoun = (parent: Command, name: string, summary = ''): Noun =>
  nounOf(parent.command(name).summary(summary));
