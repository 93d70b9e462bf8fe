// Writes what follows from the declarations in this folder: provider/module/gen/ and the table in provider/PROTOCOL.md.
// Run it with `npm run generate` after a change here; a test compares. Not part of the built product.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { replyOrder, signatures } from '../client/codec/plan.ts';
import { attributes } from './attributes.ts';
import { calls, stubs } from './calls.ts';
import { causes, returnValuesOf } from './causes.ts';
import { CKF } from './constants.ts';
import { mechanisms } from './mechanisms.ts';
import { CKR } from './return-values.ts';
import { structs } from './structs.ts';
import type { Arg, Call, OperationKind } from './types.ts';

const root = join(import.meta.dirname, '..', '..');
const rows = Object.entries(calls) as [string, Call][];
const wired = rows.filter(([, row]) => row.code !== 0);
const hex = (value: number): string => `0x${value.toString(16).padStart(8, '0')}UL`;
const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const opening = (what: string): string =>
  `/* Generated from provider/schema by provider/schema/generate.ts: run npm run generate. ${what} */\n`;

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

// --- C signatures ---------------------------------------------------------------------------------------------------

/** The C parameters of an argument: type and name. */
const parameters = ({ kind, name, c }: Arg): readonly (readonly [string, string])[] => {
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

const declaration = (name: string, pairs: readonly (readonly [string, string])[]): string =>
  `CK_RV ${name}(${pairs.map(([type, id]) => `${type} ${id}`).join(', ')})`;
const declare = (name: string, row: Call): string => declaration(name, row.args.flatMap(parameters));
const stubParameters = (types: readonly string[]): readonly (readonly [string, string])[] =>
  ['CK_SESSION_HANDLE', ...types].map((type, i) => [type, `argument_${i}`] as const);

// --- entries --------------------------------------------------------------------------------------------------------

const isSession = (arg: Arg, index: number): boolean => index === 0 && arg.c === 'CK_SESSION_HANDLE';

/** Whether the tag of a message's parameter is read or written by this call; `flags` is the entry's last parameter then. */
const tagUse = ({ kind, tag }: Arg): string => {
  const use = kind === 'seal' ? 'TAG_WRITTEN' : 'TAG_READ';
  if (tag === 'at-end') return `(flags & CKF_END_OF_MESSAGE) != 0 ? ${use} : TAG_UNUSED`;
  return tag === 'now' ? use : 'TAG_UNUSED';
};

const putting = (arg: Arg, index: number): string | null => {
  const ids = parameters(arg).map(([, id]) => id);
  switch (arg.kind) {
    case 'ulong':
      return `call_put_${isSession(arg, index) ? 'session' : 'ulong'}(&call, ${ids[0]});`;
    case 'flag':
    case 'label':
    case 'mechanism':
    case 'bytes':
    case 'template':
    case 'out':
    case 'fill':
    case 'list':
    case 'batch':
    case 'query':
      return `call_put_${arg.kind}(&call, ${ids.join(', ')});`;
    case 'data':
      return `call_put_bytes(&call, ${ids.join(', ')});`;
    case 'messageMechanism':
      return `call_put_message_mechanism(&call, ${ids.join(', ')});`;
    case 'seal':
    case 'open':
      return `call_put_message(&call, ${ids.join(', ')}, ${tagUse(arg)});`;
    case 'result':
    case 'struct':
      return `call_need(&call, ${ids[0]});`;
    case 'ignored':
      return null;
  }
};

const getting = (arg: Arg): string | null => {
  const ids = parameters(arg).map(([, id]) => id);
  switch (arg.kind) {
    case 'out':
    case 'fill':
    case 'list':
    case 'query':
    case 'result':
      return `call_get_${arg.kind}(&call, ${ids.join(', ')});`;
    case 'seal':
      return 'call_get_message(&call);';
    case 'batch':
      return `call_get_list(&call, ${ids[0]}, ${ids[2]});`;
    case 'struct':
      return `get_${arg.c.toLowerCase()}(&call, ${ids[0]});`;
    default:
      return null;
  }
};

/** What takes a call over whose data one message does not carry (large.h), by the arguments after the session. */
const largeFunctions: Readonly<Record<string, string>> = {
  'data out last': 'large_whole',
  'data bytes last': 'large_verify',
  'data out': 'large_update',
  bytes: 'large_feed',
  fill: 'large_fill',
  out: 'large_final',
  'seal bytes data out': 'large_message',
  'open bytes data out': 'large_message',
  'seal data out ulong': 'large_message_part',
  'open data out ulong': 'large_message_part',
};

const largeCondition = (args: readonly Arg[]): string | null => {
  const lengths = args
    .filter(({ kind, name }) => ['bytes', 'data', 'fill'].includes(kind) && name !== 'signature')
    .map((arg) => parameters(arg)[1]?.[1] ?? '');
  if (lengths.length === 0) return null;
  // What was held of a message until its tag was checked comes out with its last part.
  const end = args.find(({ kind, name }) => kind === 'ulong' && name === 'flags');
  if (args.some(({ kind }) => kind === 'open') && end !== undefined) {
    const place = args
      .filter(({ kind }) => kind === 'out')
      .flatMap(parameters)
      .map(([, id]) => id);
    return `large_is(${lengths[0]}) || large_is_end(flags, ${place.join(', ')})`;
  }
  return `${lengths.length === 2 ? 'large_is_message' : 'large_is'}(${lengths.join(', ')})`;
};

const largeCall = (name: string, { args, parts }: Call): readonly string[] => {
  if (parts === undefined) return [];
  const kinds = args.slice(1).map(({ kind }) => kind);
  const taker = largeFunctions[[...kinds, ...(parts.last === undefined ? [] : ['last'])].join(' ')];
  if (taker === undefined) throw new Error(`${name} has no way to go in parts`);
  const ids = args.flatMap(parameters).map(([, id]) => id);
  const call = `return ${taker}(ROW_${name}, ${ids.join(', ')});`;
  const condition = largeCondition(args);
  return condition === null ? [`  ${call}`] : [`  if (${condition})`, `    ${call}`];
};

const entry = ([name, row]: readonly [string, Call]): string => {
  const large = largeCall(name, row);
  if (large.length === 1) return [`${declare(name, row)} {`, ...large, '}', ''].join('\n');
  const puts = row.args.map(putting).filter((line) => line !== null);
  const gets = replyOrder(row.args)
    .map(getting)
    .filter((line) => line !== null);
  const run =
    gets.length === 0
      ? ['    call_run(&call);']
      : ['    if (call_run(&call)) {', ...gets.map((line) => `      ${line}`), '    }'];
  return [
    `${declare(name, row)} {`,
    '  struct call call;',
    '',
    ...large,
    `  if (call_begin(&call, &call_rows[ROW_${name}])) {`,
    ...puts.map((line) => `    ${line}`),
    ...run,
    '  }',
    '  return call_end(&call);',
    '}',
    '',
  ].join('\n');
};

const getter = (name: string, fields: Readonly<Record<string, { c: string; wire: string }>>): string =>
  [
    `static void get_${name.toLowerCase()}(struct call *call, void *to) {`,
    `  ${name} info;`,
    '',
    '  memset(&info, 0, sizeof info);',
    ...Object.values(fields).map(({ c, wire }) => {
      if (wire === 'v') return `  codec_get_version(&call->reply, &info.${c});`;
      if (wire === 'u') return `  info.${c} = buffer_get_u64(&call->reply);`;
      return `  codec_get_text(&call->reply, info.${c}, sizeof info.${c});`;
    }),
    '  if (call->reply.failed) call->rv = CKR_DEVICE_ERROR;',
    '  else memcpy(to, &info, sizeof info);',
    '}',
    '',
  ].join('\n');

const entries = (): string => {
  const generated = rows.filter(([, row]) => row.byHand !== true);
  const used = new Set(generated.flatMap(([, { args }]) => args.flatMap(({ struct }) => struct ?? [])));
  return [
    opening('One entry point a row.'),
    '#include <string.h>\n',
    '#include "../call.h"',
    '#include "../large.h"',
    '#include "../library.h"',
    '#include "numbers.h"\n',
    ...Object.entries(structs)
      .filter(([name]) => (used as ReadonlySet<string>).has(name))
      .map(([name, fields]) => getter(name, fields)),
    ...generated.map(entry),
    '/* In the lists of 3.0 and 3.2, and not carried. */\n',
    ...Object.entries(stubs).map(([name, { types }]) => {
      const pairs = stubParameters(types);
      return [
        `${declaration(name, pairs)} {`,
        ...pairs.map(([, id]) => `  (void)${id};`),
        '  const CK_RV rv = library_ready();',
        '  return rv == CKR_OK ? CKR_FUNCTION_NOT_SUPPORTED : rv;',
        '}',
        '',
      ].join('\n');
    }),
  ].join('\n');
};

// --- tables ---------------------------------------------------------------------------------------------------------

const numbers = (): string =>
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

/** Calls that leave keys, sessions and the login as they are, so that what is held back may stay so. */
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

const tables = (): string =>
  [
    opening('Calls, attributes and mechanisms as data.'),
    '#include "../call.h"',
    '#include "numbers.h"\n',
    '/* request, reply, code, in_session, once, foreign, starts, ends, continues, quiet, slow, begin, part, last */',
    'const struct call_row call_rows[ROWS] = {',
    ...wired.map(callRow),
    '};\n',
    'const char *const call_names[ROWS] = {',
    ...wired.map(([name]) => `    [ROW_${name}] = "${name}",`),
    '};\n',
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
    'enum parameter_form codec_parameter_form(CK_MECHANISM_TYPE type) {',
    '  switch (type) {',
    ...cases(
      grouped(
        Object.entries(mechanisms)
          .filter(([, { parameter }]) => parameter !== 'bytes')
          .map(
            ([name, { type, parameter }]) =>
              [`FORM_${parameter.toUpperCase()}`, `${hex(type)} /* CKM_${name} */`] as const,
          ),
      ),
    ),
    '    default:',
    '      return FORM_BYTES;',
    '  }',
    '}',
    '',
  ].join('\n');

// --- the interfaces of 3.0 and 3.2 ----------------------------------------------------------------------------------

type Addition = readonly [name: string, signature: string];
/** What a version added, in the order of its list. */
const additions = (since: '3.0' | '3.2'): readonly Addition[] => [
  ...rows.filter(([, row]) => row.since === since).map(([name, row]) => [name, declare(name, row)] as const),
  ...Object.entries(stubs)
    .filter(([, stub]) => stub.since === since)
    .map(([name, { types }]) => [name, declaration(name, stubParameters(types))] as const),
];

const members = (all: readonly Addition[]): readonly string[] =>
  all.map(([name, signature]) => `  ${signature.replace(name, `(*${name})`)};`);

const listStruct = (name: string, all: readonly Addition[]): readonly string[] => [
  `typedef struct ${name} {`,
  '  CK_VERSION version;',
  '#define CK_PKCS11_FUNCTION_INFO(name) CK_##name name;',
  '#include <pkcs11f.h>',
  '#undef CK_PKCS11_FUNCTION_INFO',
  ...members(all),
  `} ${name};\n`,
];

const listMacro = (name: string, all: readonly Addition[]): string =>
  [`#define ${name}(DKE_FUNCTION) \\`, all.map(([each]) => `  DKE_FUNCTION(${each})`).join(' \\\n'), ''].join('\n');

const interfaceHeader = (): string => {
  const [in30, in32] = [additions('3.0'), additions('3.2')];
  return [
    opening('What 3.0 and 3.2 added to pkcs11.h 2.40.'),
    '#ifndef DKE_INTERFACE_H',
    '#define DKE_INTERFACE_H\n',
    'typedef struct CK_INTERFACE {',
    '  CK_UTF8CHAR *pInterfaceName;',
    '  CK_VOID_PTR pFunctionList;',
    '  CK_FLAGS flags;',
    '} CK_INTERFACE;',
    'typedef CK_INTERFACE *CK_INTERFACE_PTR;',
    'typedef CK_INTERFACE_PTR *CK_INTERFACE_PTR_PTR;\n',
    'typedef CK_ULONG CK_SESSION_VALIDATION_FLAGS_TYPE;',
    'typedef struct CK_ASYNC_DATA {',
    '  CK_ULONG ulVersion;',
    '  CK_BYTE_PTR pValue;',
    '  CK_ULONG ulValue;',
    '  CK_OBJECT_HANDLE hObject;',
    '  CK_OBJECT_HANDLE hAdditionalObject;',
    '} CK_ASYNC_DATA;\n',
    'typedef CK_ULONG CK_GENERATOR_FUNCTION;',
    'typedef struct CK_GCM_MESSAGE_PARAMS {',
    '  CK_BYTE_PTR pIv;',
    '  CK_ULONG ulIvLen;',
    '  CK_ULONG ulIvFixedBits;',
    '  CK_GENERATOR_FUNCTION ivGenerator;',
    '  CK_BYTE_PTR pTag;',
    '  CK_ULONG ulTagBits;',
    '} CK_GCM_MESSAGE_PARAMS;',
    `#define CKF_END_OF_MESSAGE ${hex(CKF.END_OF_MESSAGE)}`,
    `#define CKF_MESSAGE_ENCRYPT ${hex(CKF.MESSAGE_ENCRYPT)}`,
    `#define CKF_MESSAGE_DECRYPT ${hex(CKF.MESSAGE_DECRYPT)}`,
    `#define CKF_FIND_OBJECTS ${hex(CKF.FIND_OBJECTS)}\n`,
    ...[...in30, ...in32].map(([, signature]) => `extern ${signature};`),
    '',
    ...listStruct('CK_FUNCTION_LIST_3_0', in30),
    ...listStruct('CK_FUNCTION_LIST_3_2', [...in30, ...in32]),
    listMacro('DKE_FUNCTIONS_3_0', in30),
    listMacro('DKE_FUNCTIONS_3_2', in32),
    '#endif',
    '',
  ].join('\n');
};

// --- causes that the library itself tells ------------------------------------------------------------------------------

const toldByLibrary = (Object.keys(causes) as (keyof typeof causes)[]).filter(
  (name) => causes[name].told === 'library',
);
const causeId = (name: string): string => `CAUSE_${name.toUpperCase().replaceAll('-', '_')}`;
/** The facts of a cause, in the order of its text: each once, because the library gives them in that order. */
const factsOf = (name: keyof typeof causes): readonly string[] => {
  const { what, todo } = causes[name];
  const facts = [...`${what}; ${todo}`.matchAll(/\{(\w+)\}/g)].map(([, fact = '']) => fact);
  if (new Set(facts).size < facts.length) throw new Error(`the cause ${name} names a fact twice`);
  return facts;
};

const causesHeader = (): string =>
  [
    opening('Why a database cannot have its key, as far as the library is who notices.'),
    '#ifndef DKE_CAUSES_H',
    '#define DKE_CAUSES_H\n',
    '/** Behind each: the facts that log_cause takes, in this order, all of them text. */',
    'enum cause {',
    ...toldByLibrary.map((name) => `  ${causeId(name)}, /* ${factsOf(name).join(', ')} */`),
    '  CAUSES',
    '};\n',
    'struct cause_row {',
    '  const char *name;',
    '  const char *text; /* {} where a fact stands */',
    '  unsigned long rv;',
    '  const char *rv_name;',
    '};\n',
    'extern const struct cause_row cause_rows[CAUSES];\n',
    '#endif',
    '',
  ].join('\n');

const causesTable = (): string =>
  [
    opening('The lines of the library’s log.'),
    '#include "causes.h"\n',
    'const struct cause_row cause_rows[CAUSES] = {',
    ...toldByLibrary.map((name) => {
      const { what, todo } = causes[name];
      const [rv] = returnValuesOf(name);
      if (rv === undefined) throw new Error(`the cause ${name} has no return value`);
      const text = JSON.stringify(`${what}; ${todo}`.replaceAll(/\{\w+\}/g, '{}'));
      return `    [${causeId(name)}] = {"${name}",\n        ${text},\n        ${hex(CKR[rv])}, "CKR_${rv}"},`;
    }),
    '};',
    '',
  ].join('\n');

// --- the protocol page ------------------------------------------------------------------------------------------------

const marks = { begin: '<!-- generated: calls -->', end: '<!-- end of generated -->' };

const callTable = (): string =>
  [
    '| id | call | request | reply | after a lost agent |',
    '|---:|---|---|---|---|',
    ...[...wired]
      .sort(([, a], [, b]) => a.code - b.code)
      .map(([name, row]) => {
        const { request, reply } = signatures(row);
        const cell = (letters: string) => (letters === '' ? '' : `\`${letters}\``);
        const again = row.code <= 2 ? '' : row.once === true ? 'error if it was sent' : 'sent again';
        return `| ${row.code} | ${name} | ${cell(request)} | ${cell(reply)} | ${again} |`;
      }),
  ].join('\n');

const protocolPage = (): string => {
  const page = readFileSync(join(root, 'provider', 'PROTOCOL.md'), 'utf8');
  const from = page.indexOf(marks.begin);
  const to = page.indexOf(marks.end);
  if (from < 0 || to < from) throw new Error('provider/PROTOCOL.md has lost the marks around its generated table');
  return `${page.slice(0, from)}${marks.begin}\n\n${callTable()}\n\n${page.slice(to)}`;
};

/** Every generated file by its path from the root of the project. */
export const generate = (): ReadonlyMap<string, string> =>
  new Map([
    ['provider/module/gen/entries.c', entries()],
    ['provider/module/gen/tables.c', tables()],
    ['provider/module/gen/numbers.h', numbers()],
    ['provider/module/gen/interface.h', interfaceHeader()],
    ['provider/module/gen/causes.h', causesHeader()],
    ['provider/module/gen/causes.c', causesTable()],
    ['provider/PROTOCOL.md', protocolPage()],
  ]);

if (import.meta.main) {
  for (const [path, text] of generate()) writeFileSync(join(root, path), text);
}
