// Whether two lists of facts (native/host-facts.ts) are of one host. A host may get another
// interface; one that has none of its former ones, or another machine id, is another host. What one
// of the two does not know decides nothing.

const valuesOf = (facts: string, name: string): readonly string[] =>
  facts.split(' ').filter((fact) => fact.startsWith(`${name}=`));

export const isSameHost = (before: string, now: string): boolean =>
  ['machine', 'interface'].every((name) => {
    const [former, present] = [valuesOf(before, name), valuesOf(now, name)];
    return former.length === 0 || present.length === 0 || present.some((value) => former.includes(value));
  });
