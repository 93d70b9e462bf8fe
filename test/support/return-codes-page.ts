// What docs/return-codes.md has to name: the return codes that the agent and the library can
// answer, by their sources, and what each failure of the service is called, by function.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { returnValueFor } from '../../provider/agent/return-values.ts';
import type { CallName } from '../../provider/schema/calls.ts';
import { type CauseRow, causeNames, causes, returnValuesOf } from '../../provider/schema/causes.ts';
import { CKR, returnValueName } from '../../provider/schema/return-values.ts';
import { ServiceError, serviceErrorCodes } from '../../server/base/service-error.ts';

const provider = resolve(import.meta.dirname, '../../provider');
const sources = (folder: string, ending: RegExp): string[] =>
  readdirSync(join(provider, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => ending.test(name))
    .map((name) => readFileSync(join(provider, folder, name), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, ''));

/** Every code that a program can see, CKR_OK apart. */
export const returnCodes = (): string[] => {
  const own = sources('agent', /\.ts$/).flatMap((text) => [...text.matchAll(/\bCKR\.([A-Z_0-9]+)/g)]);
  const module = sources('module', /\.[ch]$/).flatMap((text) => [...text.matchAll(/\bCKR_([A-Z_0-9]+)/g)]);
  const told = causeNames.flatMap((name) => returnValuesOf(name).map((rv) => ['', rv] as const));
  const names = new Set([...own, ...module, ...told].map(([, name]) => `CKR_${name}`));
  names.delete('CKR_OK');
  return [...names].sort();
};

/** Alert logs of databases print a code in decimal, without its name. */
export const numberTable = (): string => {
  const lines = returnCodes().map((name) => {
    const value = CKR[name.slice('CKR_'.length) as keyof typeof CKR];
    return { value, line: `| ${value} | 0x${value.toString(16)} | \`${name}\` |` };
  });
  const sorted = lines.toSorted((one, other) => one.value - other.value).map(({ line }) => line);
  return ['| decimal | hexadecimal | code |', '|---|---|---|', ...sorted].join('\n');
};

/** One function for each kind that errors.ts distinguishes. */
const examples: Readonly<Record<string, CallName>> = {
  'reading and changing objects': 'C_GetAttributeValue',
  'creating and generating': 'C_CreateObject',
  'starting an operation': 'C_SignInit',
  encrypting: 'C_Encrypt',
  decrypting: 'C_Decrypt',
  signing: 'C_Sign',
  verifying: 'C_Verify',
  wrapping: 'C_WrapKey',
  unwrapping: 'C_UnwrapKey',
  deriving: 'C_DeriveKey',
};

/**
 * The service's failures and their codes: the commonest first, the others with the functions that
 * have them.
 */
export const serviceTable = (): string => {
  const lines = serviceErrorCodes.map((code) => {
    const functions = new Map<string, string[]>();
    for (const [what, call] of Object.entries(examples)) {
      const name = returnValueName(returnValueFor(new ServiceError(code, ''), call));
      functions.set(name, [...(functions.get(name) ?? []), what]);
    }
    const [[most = ''] = [], ...others] = [...functions].sort(([, one], [, other]) => other.length - one.length);
    const rest = others.map(([name, what]) => `\`${name}\` when ${what.join(', ')}`);
    return `| \`${code}\` | ${[`\`${most}\``, ...rest].join('; ')} |`;
  });
  return ['| error of the service | return value |', '|---|---|', ...lines].join('\n');
};

/** The log text of each cause. */
export const causeTable = (): string => {
  const lines = causeNames.map((name) => {
    const { told, what, todo }: CauseRow = causes[name];
    const codes = returnValuesOf(name).map((rv) => `\`CKR_${rv}\``);
    const log = told === 'library' ? '`library.log`' : 'agent';
    return `| \`${name}\` | ${log} | ${codes.join(', ') || 'none: the call continues'} | ${what} | ${todo} |`;
  });
  return ['| cause | log | code | what happened | what to do |', '|---|---|---|---|---|', ...lines].join('\n');
};

if (process.argv[1] === import.meta.filename) console.log(`${numberTable()}\n\n${serviceTable()}\n\n${causeTable()}`);
