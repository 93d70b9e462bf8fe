// module/entry/gen/tables.c, module/message/gen/parameters.c and numbers.h: calls, attributes and
// mechanisms as data.
import { signatures } from '../../agent/codec/dispatcher.ts';
import { attributes } from '../attributes.ts';
import { mechanisms } from '../mechanisms.ts';
import { membersOf, type ParameterForm, parameterFormNames, parameterForms } from '../parameters.ts';
import type { Call, OperationKind } from '../types.ts';
import { hex, isSession, opening, snake, wired } from './rows.ts';

const operations: readonly OperationKind[] = [
  'find',
  'encrypt',
  'decrypt',
  'digest',
  'sign',
  'signRecover',
  'verify',
  'verifyRecover',
  'messageEncrypt',
  'messageDecrypt',
];
const operationNumber = (operation: OperationKind | undefined): number =>
  operation === undefined ? -1 : operations.indexOf(operation);
const operationSet = (set: readonly OperationKind[] = []): number =>
  set.reduce((bits, operation) => bits | (1 << operations.indexOf(operation)), 0);

// --- C signatures --------------------------------------------------------------------------------
export const numbers = (): string =>
  [
    opening('Positions in call_rows.'),
    '#ifndef DKE_NUMBERS_H',
    '#define DKE_NUMBERS_H\n',
    'enum {',
    ...wired.map(([name], i) => `  ROW_${name} = ${i},`),
    `  ROWS = ${wired.length}`,
    '};\n',
    '#endif',
    '',
  ].join('\n');

/**
 * Calls that leave keys, sessions and the login as they are, so that what is held back may stay so.
 */
const isQuiet = ({ starts, ends, continues, quiet }: Call): boolean =>
  quiet === true || starts !== undefined || ends !== undefined || continues !== undefined;

const rowNumber = (name: string | undefined): string => (name === undefined ? '-1' : `ROW_${name}`);

const callRow = ([name, row]: readonly [string, Call]): string => {
  const { request, reply } = signatures(row);
  const fields = [
    `"${request}"`,
    `"${reply}"`,
    row.code,
    row.args.some((arg, i) => isSession(arg, i) && arg.kind === 'ulong'),
    row.once === true,
    row.since === undefined,
    operationNumber(row.starts),
    operationNumber(row.ends),
    operationSet(row.continues),
    isQuiet(row),
    row.slow === true,
    rowNumber(row.parts?.begin),
    rowNumber(row.parts?.part),
    rowNumber(row.parts?.last),
  ];
  return `    [ROW_${name}] = {${fields.join(', ')}},`;
};

/** One `case` line a value, grouped by what is returned. */
const cases = (groups: ReadonlyMap<string, readonly string[]>): readonly string[] =>
  [...groups].flatMap(([result, labels]) => [
    ...labels.map((label) => `    case ${label}:`),
    `      return ${result};`,
  ]);

const grouped = (pairs: readonly (readonly [string, string])[]): ReadonlyMap<string, readonly string[]> =>
  new Map(
    [...Map.groupBy(pairs, ([result]) => result)].map(([result, each]) => [result, each.map(([, label]) => label)]),
  );

const attributeForms = {
  boolean: 'KIND_BOOLEAN',
  ulong: 'KIND_ULONG',
  date: 'KIND_DATE',
  template: 'KIND_TEMPLATE',
  mechanisms: 'KIND_MECHANISMS',
  byteBoolean: null,
  bytes: null,
  secret: null,
} as const;

const formName = (form: ParameterForm): string => `FORM_${form.toUpperCase()}`;

const offset = (c: string, member: string): string => (member === '' ? '0' : `offsetof(${c}, ${member})`);

/** One form: how long its structure is, and where its members are. */
const formRow = (form: ParameterForm): readonly string[] => {
  const { c } = parameterForms[form];
  if (c === '') return [];
  const each = membersOf(form).map(
    ([, { kind, c: name, count = '' }]) =>
      `{MEMBER_${snake(kind).toUpperCase()}, ${offset(c, name)}, ${offset(c, count)}}`,
  );
  return [`    [${formName(form)}] = {sizeof(${c}), {${each.join(', ')}}},`];
};

export const tables = (): string =>
  [
    opening('Calls as data.'),
    '#include "call/call.h"',
    '#include "message/gen/numbers.h"\n',
    '/* request, reply, code, in_session, once, foreign, starts, ends, continues, quiet, slow, begin, part, last */',
    'const struct call_row call_rows[ROWS] = {',
    ...wired.map(callRow),
    '};\n',
    'const char *const call_names[ROWS] = {',
    ...wired.map(([name]) => `    [ROW_${name}] = "${name}",`),
    '};',
    '',
  ].join('\n');

/** What the codec knows of attributes and of parameters of mechanisms. */
export const parameters = (): string =>
  [
    opening('Attributes and parameters of mechanisms as data.'),
    '#include "message/argument_codec.h"\n',
    'enum attribute_kind codec_attribute_kind(CK_ATTRIBUTE_TYPE type) {',
    '  switch (type) {',
    ...cases(
      grouped(
        Object.entries(attributes).flatMap(([name, { type, kind }]) => {
          const form = attributeForms[kind];
          return form === null ? [] : [[form, `${hex(type)} /* CKA_${name} */`] as const];
        }),
      ),
    ),
    '    default:',
    '      return KIND_BYTES;',
    '  }',
    '}\n',
    '/* length, and of each member: kind, place, and the place of its length or count */',
    'const struct parameter_row codec_parameters[] = {',
    ...parameterFormNames.flatMap(formRow),
    '};\n',
    'enum parameter_form codec_parameter_form(CK_MECHANISM_TYPE type) {',
    '  switch (type) {',
    ...cases(
      grouped(
        Object.entries(mechanisms)
          .filter(([, { parameter }]) => parameter !== 'bytes')
          .map(([name, { type, parameter }]) => [`${formName(parameter)}`, `${hex(type)} /* CKM_${name} */`] as const),
      ),
    ),
    '    default:',
    '      return FORM_BYTES;',
    '  }',
    '}',
    '',
  ].join('\n');

/** The forms of a mechanism's parameter. */
export const formsHeader = (): string =>
  [
    opening('The forms of a mechanism’s parameter, by number on the wire.'),
    '#ifndef DKE_FORMS_H',
    '#define DKE_FORMS_H\n',
    'enum parameter_form {',
    ...parameterFormNames.map((form, i) => `  ${formName(form)} = ${i},`),
    '};\n',
    '#endif',
    '',
  ].join('\n');
