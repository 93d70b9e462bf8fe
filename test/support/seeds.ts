// Which seeds a test of random histories runs: all of its tier, or those that a person names.

/** 0, 1, 2 and so on. */
export const seedsBelow = (count: number): readonly number[] => Array.from({ length: count }, (_, seed) => seed);

/** `text`: numbers and ranges, for example `3,20-39`; undefined: none is named. */
export const seedsFrom = (text: string | undefined): readonly number[] | undefined =>
  text?.split(',').flatMap((part) => {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? [];
    const seeds = seedsBelow(Number(last) + 1).slice(Number(first));
    if (seeds.length > 0) return seeds;
    throw new Error(`DKE_TEST_SEEDS has ${part}: name numbers and ranges, for example 3,20-39`);
  });
