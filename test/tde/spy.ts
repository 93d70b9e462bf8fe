// Converts the output of OpenSC's pkcs11-spy.so (PKCS11SPY_OUTPUT) into the form of trace.ts, so
// that a trace of a real database can be compared with the simulator's. Values, of which such a
// file has many (also PINs and plaintext keys), are omitted: types and lengths remain.
//
// All processes of a database append to one file, and the spy writes no process number. It numbers
// the calls of each process from 0, so that they can be distinguished: a number that two of them
// could have belongs to the one with the last call, which is right or makes no difference when both
// did the same up to there, as processes do that begin alike. The threads of one process stay
// together.
//
// Command line: node test/tde/spy.ts <file of pkcs11-spy> writes the golden form to standard
// output, process by process.
import { readFileSync } from 'node:fs';
import { lineOf, type TracedCall } from './trace.ts';

/** Attributes that the spy writes as words: of one byte, or of a CK_ULONG's eight. */
const sizeOfWord = (word: string): number => (/^(True|False)$/.test(word) ? 1 : 8);

interface Section {
  /** The number of the call within its process, as the spy counts. */
  readonly number: number;
  readonly name: string;
  readonly lines: readonly string[];
}

const sections = (text: string): readonly Section[] => {
  const found: { number: number; name: string; lines: string[] }[] = [];
  for (const line of text.split('\n')) {
    const [, number, name] = /^(\d+): (C_\w+)\s*$/.exec(line) ?? [];
    if (name !== undefined) found.push({ number: Number(number), name, lines: [] });
    else found.at(-1)?.lines.push(line);
  }
  return found;
};

/** The first template of a call, which is what went in. Hex dumps stand between its lines. */
const templateOf = (lines: readonly string[]): readonly string[] | undefined => {
  const start = lines.findIndex((line) => line.startsWith('[in] pTemplate['));
  if (start < 0) return undefined;
  const attributes: string[] = [];
  for (const line of lines.slice(start + 1)) {
    if (/^(\[out\]|\[in\]|Returned:)/.test(line)) break;
    const [, name, rest = ''] =
      /^ {4}CKA_(\w+)\s+(\S.*)$/.exec(line) ?? /^ {4}(0x[0-9A-Fa-f]+|Unknown\S*)\s+(\S.*)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const [, length] = /^[0-9A-Fa-f]{8,16} \/ (-?\d+)\s*$/.exec(rest.trim()) ?? [];
    attributes.push(`${name}:${length ?? sizeOfWord(rest.trim())}`);
  }
  return attributes;
};

const lengthAfter = (lines: readonly string[], start: RegExp): string | undefined => {
  const line = lines.find((each) => start.test(each));
  return line === undefined ? undefined : /\/ (-?\d+)\s*$/.exec(line)?.[1];
};

const readSection = ({ name, lines }: Section): TracedCall | undefined => {
  const returned = lines.map((line) => /^Returned:\s+\d+ (\S+)/.exec(line)?.[1]).find((each) => each !== undefined);
  // A call that has not returned does not count yet.
  if (returned === undefined) return undefined;
  const mechanism = lines.map((line) => /^\[in\] pMechanism->type\s*=\s*(?:CKM_)?(\S+)/.exec(line)?.[1]).find(Boolean);
  const parameter = lines.find((line) => line.startsWith('[in] pMechanism->pParameter'));
  const size = parameter === undefined ? undefined : (/\/ (\d+)\s*$/.exec(parameter)?.[1] ?? '0');
  const attributes = templateOf(lines);
  const most = lines.map((line) => /^\[in\] ulMaxObjectCount = 0x([0-9a-f]+)/.exec(line)?.[1]).find(Boolean);
  const found = lines.map((line) => /^\[out\] ulObjectCount = 0x([0-9a-f]+)/.exec(line)?.[1]).find(Boolean);
  const ciphers = /^C_(Encrypt|Decrypt|Sign|Digest)$/.test(name);
  const before = ciphers ? lengthAfter(lines, /^\[in\] p\w+\[/) : undefined;
  const after = ciphers ? lengthAfter(lines, /^\[out\] p\w+\[/) : undefined;
  const counts =
    before !== undefined
      ? `${before}>${after ?? '-'}`
      : most !== undefined
        ? `${Number.parseInt(found ?? '0', 16)} of ${Number.parseInt(most, 16)}`
        : undefined;
  return {
    function: name,
    ...(mechanism === undefined ? {} : { mechanism: `${mechanism}/${size ?? 0}` }),
    ...(attributes === undefined ? {} : { attributes }),
    ...(counts === undefined ? {} : { counts }),
    rv: returned,
  };
};

/** The sections of each process, in the order in which the processes began. */
const byProcess = (all: readonly Section[]): readonly (readonly Section[])[] => {
  const processes: Section[][] = [];
  /** The processes in another order: the one with the latest call first. */
  const recent: Section[][] = [];
  for (const section of all) {
    let mine = section.number === 0 ? undefined : recent.find((each) => each.at(-1)?.number === section.number - 1);
    if (mine === undefined) {
      // A process that begins, or a file that was started after it.
      mine = [];
      processes.push(mine);
    } else recent.splice(recent.indexOf(mine), 1);
    mine.push(section);
    recent.unshift(mine);
  }
  return processes;
};

/** The calls of each process that wrote into the file. */
export const readSpyTraces = (text: string): readonly (readonly TracedCall[])[] =>
  byProcess(sections(text)).map((own) => own.map(readSection).filter((call) => call !== undefined));

if (import.meta.main) {
  const [path] = process.argv.slice(2);
  if (path === undefined) {
    console.error('usage: node test/tde/spy.ts <file that pkcs11-spy wrote>');
    process.exitCode = 2;
  } else {
    const texts = readSpyTraces(readFileSync(path, 'utf8')).map((calls) => calls.map(lineOf).join('\n'));
    console.log(texts.map((text, at) => `== process ${at + 1}\n${text}`).join('\n\n'));
  }
}
