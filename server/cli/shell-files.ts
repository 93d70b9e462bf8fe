// What a package installs for a person at a shell: completion and the manual page. Run when
// packages are made; no command imports it.

import { makeProgram } from './program.ts';
import { completionScript } from './terminal/completion.ts';
import { manualPage } from './terminal/manual-page.ts';

/** The texts of the files, by file name. */
export const shellFiles = async (version: string, date: Date): Promise<Readonly<Record<string, string>>> => {
  const program = await makeProgram(version);
  return {
    'dke.1': manualPage(program, version, date),
    'completion.bash': completionScript(program, 'bash'),
    'completion.zsh': completionScript(program, 'zsh'),
    'completion.fish': completionScript(program, 'fish'),
  };
};
