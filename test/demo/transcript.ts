// The demonstration's transcript: numbered chapters, one line a fact, and a stop at the first thing
// that is not as it should be.

const plain = process.stdout.isTTY !== true || process.env.NO_COLOR !== undefined;
const paint = (code: number, text: string): string => (plain ? text : `\u001b[${code}m${text}\u001b[0m`);

let chapters = 0;

export const chapter = (title: string): void => {
  chapters += 1;
  process.stdout.write(`\n${paint(1, `${chapters}. ${title}`)}\n`);
};

export const say = (text: string): void => {
  process.stdout.write(`   ${text}\n`);
};

/** Something that was run or sent, so that the reader can do it too. */
export const show = (command: string): void => {
  process.stdout.write(`   ${paint(2, `$ ${command}`)}\n`);
};

export class DemonstrationFailure extends Error {
  override readonly name = 'DemonstrationFailure';
}

/**
 * States a fact. The transcript shows it when it holds; the demonstration ends when it does not.
 */
export function check(holds: boolean, fact: string, seen?: unknown): asserts holds {
  if (!holds) throw new DemonstrationFailure(seen === undefined ? fact : `${fact} (seen: ${JSON.stringify(seen)})`);
  process.stdout.write(`   ${paint(32, '✓')} ${fact}\n`);
}
