// Runs one `dke` command after the other in this process: the program's own entry, imported again
// for each of them. Loading it is most of the time of a short command. Started by command.ts.
import { pathToFileURL } from 'node:url';
import { commandPath } from './command.ts';

interface Asked {
  readonly args: readonly string[];
}

let written = { stdout: '', stderr: '' };
for (const name of ['stdout', 'stderr'] as const)
  process[name].write = ((chunk: string | Uint8Array, ...more: readonly unknown[]): boolean => {
    written[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    for (const done of more) if (typeof done === 'function') setImmediate(() => done());
    return true;
  }) as typeof process.stdout.write;

let count = 0;
process.on('message', ({ args }: Asked) => {
  written = { stdout: '', stderr: '' };
  process.argv = [process.execPath, commandPath, ...args];
  process.exitCode = 0;
  count += 1;
  const entry = pathToFileURL(commandPath);
  entry.search = `?${count}`;
  const ended = (stderr: string): void => {
    const code = Number(process.exitCode ?? 0);
    process.exitCode = 0;
    process.send?.({ code, ...written, stderr: written.stderr + stderr });
  };
  import(entry.href).then(
    () => ended(''),
    (error: Error) => ended(`it threw: ${error.stack}`),
  );
});
process.on('disconnect', () => process.exit());
