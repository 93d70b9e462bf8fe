// module/entry/gen/entries.c: one entry point of the library for each row.
import { replyOrder } from '../../agent/codec/dispatcher.ts';
import { stubs } from '../calls.ts';
import { structs } from '../structs.ts';
import type { Arg, Call } from '../types.ts';
import { declaration, declare, isSession, opening, parameters, rows, stubParameters } from './rows.ts';

/**
 * Whether the tag of a message's parameter is read or written by this call; `flags` is the entry's
 * last parameter then.
 */
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

/**
 * What takes a call over whose data one message does not carry (large_data.h), by the arguments
 * after the session.
 */
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

export const entries = (): string => {
  const generated = rows.filter(([, row]) => row.byHand !== true);
  const used = new Set(generated.flatMap(([, { args }]) => args.flatMap(({ struct }) => struct ?? [])));
  return [
    opening('One entry point a row.'),
    '#include <string.h>\n',
    '#include "call/call.h"',
    '#include "call/large_data.h"',
    '#include "connection/library.h"',
    '#include "message/gen/numbers.h"\n',
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
