// module/message/gen/causes.h and module/message/gen/causes.c: the causes that the library itself
// tells.
import { causes, returnValuesOf } from '../causes.ts';
import { CKR } from '../return-values.ts';
import { hex, opening } from './rows.ts';

const toldByLibrary = (Object.keys(causes) as (keyof typeof causes)[]).filter(
  (name) => causes[name].told === 'library',
);
const causeId = (name: string): string => `CAUSE_${name.toUpperCase().replaceAll('-', '_')}`;
/**
 * The facts of a cause, in the order of its text: each once, because the library gives them in that
 * order.
 */
const factsOf = (name: keyof typeof causes): readonly string[] => {
  const { what, todo } = causes[name];
  const facts = [...`${what}; ${todo}`.matchAll(/\{(\w+)\}/g)].map(([, fact = '']) => fact);
  if (new Set(facts).size < facts.length) throw new Error(`the cause ${name} names a fact twice`);
  return facts;
};

export const causesHeader = (): string =>
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

export const causesTable = (): string =>
  [
    opening('The lines of the library’s log.'),
    '#include "message/gen/causes.h"\n',
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
