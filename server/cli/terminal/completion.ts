// `dke completion bash|zsh|fish`: a script that completes commands, options and their fixed values,
// made of the commands themselves. It asks no service: names of keys and the like are not
// completed.

import { Argument, type Command, type Option } from 'commander';
import { candidatesOf, valueWord } from '../service/command-rows.ts';

interface Flag {
  readonly names: readonly string[];
  readonly help: string;
  /** Undefined: it takes none. */
  readonly value: Value | undefined;
}
type Value = 'file' | 'folder' | 'text' | readonly string[];
interface Place {
  /** `vault list`; empty for `dke` itself. */
  readonly path: string;
  readonly words: readonly { readonly name: string; readonly help: string }[];
  readonly flags: readonly Flag[];
  /** What completes the place's first argument; undefined: it takes none. */
  readonly argument: Value | undefined;
}

const takenBy = (word: string, choices: readonly string[] | undefined): Value => {
  if (choices !== undefined) return choices;
  if (/^(file|path|backup)$/.test(word)) return 'file';
  return /^(folder|directory)$/.test(word) ? 'folder' : 'text';
};

const flagOf = (option: Option): Flag => ({
  names: [option.short, option.long].filter((name) => name !== undefined),
  help: option.description,
  value: option.required || option.optional ? takenBy(valueWord(option), candidatesOf(option)) : undefined,
});

export const placesOf = (command: Command, path = ''): readonly Place[] => {
  const [argument] = command.registeredArguments;
  return [
    {
      path,
      words: command.commands.map((each) => ({ name: each.name(), help: each.summary() || each.description() })),
      flags: [...command.options.map(flagOf), { names: ['-h', '--help'], help: 'display help', value: undefined }],
      argument: argument === undefined ? undefined : takenBy(argument.name(), argument.argChoices),
    },
    ...command.commands.flatMap((each) => placesOf(each, path === '' ? each.name() : `${path} ${each.name()}`)),
  ];
};

/** For a shell: within single quotes. */
const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const kindOf = (value: Value): string => (typeof value === 'string' ? `@${value}` : value.join(' '));
const firstLine = (help: string): string => help.replace(/\s+/g, ' ').replace(/^(.{0,70}\S)(\s.*)?$/, '$1');

/** `case` branches, the same ones together. */
const branches = (rows: readonly (readonly [pattern: string, text: string])[]): string => {
  const byText = new Map<string, string[]>();
  for (const [pattern, text] of rows) byText.set(text, [...(byText.get(text) ?? []), quote(pattern)]);
  return [...byText].map(([text, patterns]) => `    ${patterns.join('|')}) echo ${quote(text)} ;;`).join('\n');
};

const flagRows = (places: readonly Place[], root: Place) =>
  places.flatMap(({ path, flags }) =>
    flags
      .filter((flag) => path === '' || !root.flags.some(({ names }) => names[0] === flag.names[0]))
      .flatMap(({ names, value }) =>
        value === undefined ? [] : names.map((name) => [`${path}:${name}`, kindOf(value)] as const),
      ),
  );

/** Functions that bash and zsh share: what there is at a place. */
const tables = (places: readonly Place[]): string => {
  const [root] = places as readonly [Place];
  return `_dke_words() { # path
  case $1 in
${branches(places.filter(({ words }) => words.length > 0).map(({ path, words }) => [path, words.map(({ name }) => name).join(' ')]))}
  esac
}
_dke_flags() { # path
  case $1 in
${branches(places.map(({ path, flags }) => [path, flags.flatMap(({ names }) => names).join(' ')]))}
  esac
}
_dke_argument() { # path
  case $1 in
${branches(places.flatMap(({ path, argument }) => (argument === undefined ? [] : [[path, kindOf(argument)] as const])))}
  esac
}
_dke_value() { # path:flag
  case $1 in
${branches(flagRows(places, root))}
  esac
}
# The candidates for the word after the others; @file and @folder stand for paths.
_dke_candidates() { # word, the words before it
  local current=$1 at='' last='' word value
  shift
  for word in "$@"; do
    [ -n "$word" ] || continue
    case " $(_dke_words "$at") " in *" $word "*) at="\${at:+$at }$word" ;; esac
    last=$word
  done
  case $last in
    -*)
      value=$(_dke_value "$at:$last")
      [ -n "$value" ] || value=$(_dke_value ":$last")
      if [ -n "$value" ]; then
        echo "$value"
        return
      fi
      ;;
  esac
  case $current in
    -*) echo "$(_dke_flags "$at") $(_dke_flags '')" ;;
    *) echo "$(_dke_words "$at") $(_dke_argument "$at")" ;;
  esac
}`;
};

const bash = (places: readonly Place[]): string => `# Completion of dke for bash. Made by: dke completion bash
${tables(places)}
_dke() {
  local current=\${COMP_WORDS[COMP_CWORD]} found
  found=$(_dke_candidates "$current" "\${COMP_WORDS[@]:1:COMP_CWORD-1}")
  case $found in
    *@file*) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    *@folder*) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "\${found//@text/}" -- "$current") ;;
  esac
}
complete -F _dke dke
`;

const zsh = (places: readonly Place[]): string => `#compdef dke
# Completion of dke for zsh. Made by: dke completion zsh
${tables(places)}
_dke() {
  local found
  found=$(_dke_candidates "\${words[CURRENT]}" "\${(@)words[2,CURRENT-1]}")
  case $found in
    *@file*) _files ;;
    *@folder*) _files -/ ;;
    *) compadd -- \${=found//@text/} ;;
  esac
}
if [ "$funcstack[1]" = _dke ]; then _dke "$@"; else compdef _dke dke; fi
`;

const fishFlag = (condition: string, { names, help, value }: Flag): string => {
  const words = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
  const takes =
    value === undefined
      ? ''
      : value === 'file' || value === 'folder'
        ? ' -r -F'
        : ` -x${typeof value === 'string' ? '' : ` -a ${quote(value.join(' '))}`}`;
  return `complete -c dke${condition} ${words.join(' ')}${takes} -d ${quote(firstLine(help))}`;
};

const fish = (places: readonly Place[]): string => {
  const [root] = places as readonly [Place];
  const at = (path: string): string => ` -n ${quote(`__dke_at ${quote(path)}`)}`;
  return [
    '# Completion of dke for fish. Created by: dke completion fish',
    `set -g __dke_paths ${places.map(({ path }) => quote(path)).join(' ')}`,
    `function __dke_at
    set -l line (commandline -opc)[2..-1]
    if test "$line" != "$__dke_line"; or not set -q __dke_place
        set -g __dke_line "$line"
        set -g __dke_place ''
        for word in $line
            set -l next (string trim "$__dke_place $word")
            contains -- $next $__dke_paths; and set -g __dke_place $next
        end
    end
    test "$__dke_place" = "$argv[1]"
end`,
    'complete -c dke -f',
    ...root.flags.map((flag) => fishFlag('', flag)),
    ...places.flatMap(({ path, words, flags, argument }) => [
      ...words.map(({ name, help }) => `complete -c dke${at(path)} -a ${quote(name)} -d ${quote(firstLine(help))}`),
      ...(path === '' ? [] : flags.slice(0, -1).map((flag) => fishFlag(at(path), flag))),
      ...(argument === 'file' || argument === 'folder' ? [`complete -c dke${at(path)} -F`] : []),
      ...(Array.isArray(argument) ? [`complete -c dke${at(path)} -a ${quote(argument.join(' '))}`] : []),
    ]),
    '',
  ].join('\n');
};

export const shells = { bash, zsh, fish };
export type Shell = keyof typeof shells;

export const completionScript = (program: Command, shell: Shell): string => shells[shell](placesOf(program));

export const addCompletion = (program: Command, everything: () => Promise<Command>): void => {
  program
    .command('completion')
    .description(
      'Prints a script that completes commands and options. bash: source <(dke completion bash) in ~/.bashrc; zsh: the same after ' +
        'compinit in ~/.zshrc; fish: dke completion fish > ~/.config/fish/completions/dke.fish.',
    )
    .addArgument(new Argument('<shell>', 'shell to complete for').choices(Object.keys(shells)))
    .action(async (shell: Shell) => {
      process.stdout.write(completionScript(await everything(), shell));
    });
};
