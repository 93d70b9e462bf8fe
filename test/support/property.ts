// Properties (fast-check). In the short tier each run has the same examples: a change is refused
// for what it changed, and never by chance. The long tier looks for new ones; what fails there
// names its seed.
import fc from 'fast-check';
import { isLong } from './tiers.ts';

if (!isLong) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 20_261_121 });

export default fc;

/** mulberry32: small, and the same everywhere. */
export const chance = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};
