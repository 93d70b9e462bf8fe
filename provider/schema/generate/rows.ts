// What the generated files share: the rows in order, and the notation of C.
import { calls } from '../calls.ts';
import type { Arg, Call } from '../types.ts';

export const rows = Object.entries(calls) as [string, Call][];
export const wired = rows.filter(([, row]) => row.code !== 0);
export const hex = (value: number): string => `0x${value.toString(16).padStart(8, '0')}UL`;
export const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
export const opening = (what: string): string =>
  `/* Generated from provider/schema by provider/schema/generate.ts: run npm run generate. ${what} */\n`;

/** The C parameters of an argument: type and name. */
export const parameters = ({ kind, name, c }: Arg): readonly (readonly [string, string])[] => {
  const id = snake(name);
  switch (kind) {
    case 'ulong':
    case 'flag':
    case 'ignored':
      return [[c, id]];
    case 'label':
    case 'mechanism':
    case 'messageMechanism':
    case 'result':
    case 'struct':
      return [[`${c}_PTR`, id]];
    case 'bytes':
    case 'data':
    case 'fill':
    case 'seal':
    case 'open':
      return [
        [`${c}_PTR`, id],
        ['CK_ULONG', `${id}_length`],
      ];
    case 'template':
    case 'query':
      return [
        [`${c}_PTR`, id],
        ['CK_ULONG', `${id}_count`],
      ];
    case 'out':
      return [
        [`${c}_PTR`, id],
        ['CK_ULONG_PTR', `${id}_length`],
      ];
    case 'list':
      return [
        [`${c}_PTR`, id],
        ['CK_ULONG_PTR', `${id}_count`],
      ];
    case 'batch':
      return [
        [`${c}_PTR`, id],
        ['CK_ULONG', `${id}_most`],
        ['CK_ULONG_PTR', `${id}_count`],
      ];
  }
};

export const declaration = (name: string, pairs: readonly (readonly [string, string])[]): string =>
  `CK_RV ${name}(${pairs.map(([type, id]) => `${type} ${id}`).join(', ')})`;
export const declare = (name: string, row: Call): string => declaration(name, row.args.flatMap(parameters));
export const stubParameters = (types: readonly string[]): readonly (readonly [string, string])[] =>
  ['CK_SESSION_HANDLE', ...types].map((type, i) => [type, `argument_${i}`] as const);

// --- entries -------------------------------------------------------------------------------------

export const isSession = (arg: Arg, index: number): boolean => index === 0 && arg.c === 'CK_SESSION_HANDLE';
