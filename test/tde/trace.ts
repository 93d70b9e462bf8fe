// The library calls of a process: function, mechanism and length of its parameter, types and
// lengths of attributes, lengths of data, return code. No value is in it. Read from a driver's
// trace or from what pkcs11-spy writes (spy.ts), and written as text that two of them can be
// compared by, line by line.
import { readFileSync } from 'node:fs';
import { attributeName } from '../../provider/schema/attributes.ts';
import { mechanismName } from '../../provider/schema/mechanisms.ts';
import { returnValueName } from '../../provider/schema/return-values.ts';

export interface TracedCall {
  readonly function: string;
  /** `AES_CBC/16`: the name, and the bytes of its parameter. */
  readonly mechanism?: string;
  /** `LABEL:52`, as the call gives them. */
  readonly attributes?: readonly string[];
  /** Bytes of input and output, objects requested and found. */
  readonly counts?: string;
  readonly rv: string;
  /** Nanoseconds; not in the text. */
  readonly took?: number;
}

/** The line that represents a call in a golden trace. */
export const lineOf = ({ function: name, mechanism, attributes, counts, rv }: TracedCall): string =>
  [name, mechanism, attributes && `[${attributes.join(' ')}]`, counts, rv === 'CKR_OK' ? undefined : `= ${rv}`]
    .filter((part) => part !== undefined)
    .join(' ');

const hex = (text: string): number => Number.parseInt(text, 16);

/** Reads a trace of driver/token.c. */
export const readDriverTrace = (text: string): readonly TracedCall[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [name = '', detail = '', rv = '', took = ''] = line.split('\t');
      const given = Object.fromEntries(detail.split(' ').map((pair) => pair.split('=') as [string, string]));
      const [type = '', length = ''] = given.mechanism?.split(':') ?? [];
      const attributes = given.template?.split(',').map((each) => {
        const [attribute = '', size = ''] = each.split(':');
        return `${attributeName(hex(attribute)).replace('CKA_', '')}:${size}`;
      });
      const counts =
        given.in !== undefined
          ? `${given.in}>${given.out ?? '-'}`
          : given.most !== undefined
            ? `${given.found} of ${given.most}`
            : undefined;
      return {
        function: name,
        ...(given.mechanism === undefined
          ? {}
          : { mechanism: `${mechanismName(hex(type)).replace('CKM_', '')}/${length}` }),
        ...(attributes === undefined ? {} : { attributes }),
        ...(counts === undefined ? {} : { counts }),
        rv: returnValueName(hex(rv)),
        took: Number(took),
      };
    });

export const driverTraceOf = (path: string): readonly TracedCall[] => readDriverTrace(readFileSync(path, 'utf8'));
