// Whether two lists of facts (adapters/host/host-facts.ts) are of one host. A host may get another
// interface; one that has none of its former ones, or another machine id, is another host. What one
// of the two does not know decides nothing.

/**
 * A data directory as a node of PostgreSQL tells it from its copies: the file of the node's id as
 * its file system knows it, and the facts of the host. A copied disk has the same file, and the
 * machine that it is in has other facts.
 */
export interface NodeDirectory {
  readonly file: string;
  readonly host: string;
}
export const directoryText = ({ file, host }: NodeDirectory): string => [file, host].join(' ').trim();
const isFact = (word: string): boolean => word.includes('=');

/** Texts of `directoryText`; one of an earlier version says nothing of its host. */
export const isSameDirectory = (before: string, now: string): boolean => {
  const [former, present] = [before.split(' '), now.split(' ')];
  const fileOf = (words: readonly string[]): string => words.filter((word) => !isFact(word)).join(' ');
  return before === '' || (fileOf(former) === fileOf(present) && isSameHost(before, now));
};

const valuesOf = (facts: string, name: string): readonly string[] =>
  facts.split(' ').filter((fact) => fact.startsWith(`${name}=`));

export const isSameHost = (before: string, now: string): boolean =>
  ['machine', 'interface'].every((name) => {
    const [former, present] = [valuesOf(before, name), valuesOf(now, name)];
    return former.length === 0 || present.length === 0 || present.some((value) => former.includes(value));
  });
