// The built libdke_pkcs11.so as its hosts meet it: what it exports, what it needs, what it does
// when it is loaded.
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { calls, stubs } from '../../provider/schema/calls.ts';

const folder = join(import.meta.dirname, '..', '..', 'build', 'provider', '1.0');
const library = join(folder, 'libdke_pkcs11.so');
const run = (command: string, ...args: string[]): string => execFileSync(command, args, { encoding: 'utf8' });
const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');

describe.runIf(existsSync(library))('libdke_pkcs11.so', () => {
  test('exports the functions of Cryptoki and nothing else', () => {
    const names = lines(run('nm', '-D', '--defined-only', library)).map((line) => line.split(' ').at(-1));
    expect(names.sort()).toEqual([...Object.keys(calls), ...Object.keys(stubs)].sort());
  });

  test('is bound as it is loaded, and its tables are read-only then', () => {
    const dynamic = run('readelf', '-d', library);
    expect(dynamic).toMatch(/FLAGS.*(BIND_NOW|NOW)/);
    const segments = run('readelf', '-lW', library);
    expect(segments).toContain('GNU_RELRO');
    expect(segments).not.toMatch(/GNU_STACK.*RWE/);
  });

  // Behaviour in a host with others: test/scenario/neighbours.test.ts.
  test('looks for none of its own functions among those of other libraries', () => {
    expect(run('readelf', '-d', library)).toMatch(/SYMBOLIC/);
    expect(run('readelf', '-rW', library)).not.toMatch(/ C_\w+( |$)/m);
  });

  // The file itself is not marked: what the system's compiler adds to each library has no such
  // instructions.
  test('begins its functions with an instruction that the CPU accepts as the target of a jump', () => {
    expect(run('objdump', '-d', '--disassemble=C_Sign', library)).toMatch(/\b(endbr64|bti|paciasp)\b/);
  });

  // At a fork, and at its own end, it closes its socket: by pthread_atfork, which dlclose undoes,
  // and by a destructor.
  test('registers nothing to run at exit, creates no thread, handles no signal', () => {
    const wanted = lines(run('nm', '-D', '--undefined-only', library)).map((line) => line.trim().split(/[ @]+/)[1]);
    const forbidden = ['atexit', '__cxa_atexit', 'on_exit', 'pthread_create', 'sigaction', 'signal'];
    expect(wanted.filter((name) => forbidden.includes(name ?? ''))).toEqual([]);
  });

  test('is beside a program that starts the agent', () => {
    expect(statSync(join(folder, 'dke-agent')).mode & 0o111).toBe(0o111);
  });

  test('is, in a copy of the project, beside a program that runs the agent of the copy', () => {
    const copy = mkdtempSync(join(tmpdir(), 'dke-copy-'));
    try {
      const files = ['build/provider/1.0', 'dist/provider/agent/threads', 'node_modules/.bin'].map((each) =>
        join(copy, each),
      );
      for (const each of files) mkdirSync(each, { recursive: true });
      copyFileSync(join(folder, 'dke-agent'), join(copy, 'build/provider/1.0/dke-agent'));
      symlinkSync(process.execPath, join(copy, 'node_modules/.bin/node'));
      writeFileSync(join(copy, 'package.json'), '{"type":"module"}');
      writeFileSync(
        join(copy, 'dist/provider/agent/threads/main.js'),
        'console.log(import.meta.filename, process.argv[2])',
      );
      // A link to the copy is a second name of the program, which must find the same agent.
      symlinkSync(copy, `${copy}.link`);
      for (const from of [copy, `${copy}.link`])
        expect(run(join(from, 'build/provider/1.0/dke-agent'), 'argument')).toBe(
          `${join(copy, 'dist/provider/agent/threads/main.js')} argument\n`,
        );
    } finally {
      rmSync(`${copy}.link`, { force: true });
      rmSync(copy, { recursive: true, force: true });
    }
  });
});

if (!existsSync(library)) console.log('skipped: build/provider/1.0/libdke_pkcs11.so is missing');
