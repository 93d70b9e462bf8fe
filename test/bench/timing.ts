// Whether the time of a comparison reveals where a guess is wrong: guesses that are wrong in their
// first byte and guesses that are wrong in their last one, in random order, and Welch's t-test over
// the times (as Reparaz, Balasch and Verbauwhede do in "dude, is my code constant time?", 2017).
// Two rules keep the measurement itself out of the result: both kinds of guess are made by the same
// code, because what runs just before the clock leaves its traces in caches and predictors; and
// there are several rounds, each with its own secret in its own place, of which the median counts,
// because a leak has the same sign in every round and a disturbance has not. A |t| below 4.5 finds
// no difference. A comparison that stops at the first wrong byte is measured in the same way, to
// show that a difference would be found.

import { createHash, createHmac, randomBytes, randomInt } from 'node:crypto';
import { core } from '../../addon/core.ts';
import { table } from './statistics.ts';
import { type Verdict, verdictText } from './verdict.ts';

const mostT = 4.5;
const rounds = 9;
/** Number of samples of one round. */
const samples = 40_000;
/** Calls of one sample: the clock counts in tens of nanoseconds. */
const calls = 8;
/** The slowest samples are of other things: interrupts, collections of garbage. */
const kept = 0.9;

export interface TimingFigure {
  readonly name: string;
  /** Welch's t of nanoseconds, with its sign: the median of the rounds. */
  readonly t: number;
  /** t of every round, in ascending order. */
  readonly everyT: readonly number[];
  readonly firstNs: number;
  readonly lastNs: number;
  /** Null: it is measured to show that the test finds something. */
  readonly goal: Verdict | null;
}

/** One comparison: `guess` is wrong at byte `wrong`. */
interface Comparison {
  readonly name: string;
  readonly prepare: (wrong: 'first' | 'last') => () => boolean;
  readonly leaks?: true;
}

const welch = (one: readonly number[], other: readonly number[]) => {
  const of = (values: readonly number[]) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
    return { mean, error: variance / values.length };
  };
  const [a, b] = [of(one), of(other)];
  return { t: (a.mean - b.mean) / Math.sqrt(a.error + b.error), firstNs: a.mean, lastNs: b.mean };
};

const measureRound = ({ name, prepare }: Comparison) => {
  const taken: { readonly wrong: 'first' | 'last'; readonly ns: number }[] = [];
  for (let at = -samples / 10; at < samples; at += 1) {
    const wrong = randomInt(2) === 0 ? 'first' : 'last';
    const compare = prepare(wrong);
    let right = false;
    const begun = process.hrtime.bigint();
    for (let call = 0; call < calls; call += 1) right = compare() || right;
    const ns = Number(process.hrtime.bigint() - begun) / calls;
    if (right) throw new Error(`${name}: a wrong guess was taken for the right one`);
    // The first of them warm up.
    if (at >= 0) taken.push({ wrong, ns });
  }
  const limit = taken.map(({ ns }) => ns).toSorted((a, b) => a - b)[Math.floor(kept * samples)] ?? 0;
  const timesOf = (which: 'first' | 'last'): readonly number[] =>
    taken.filter(({ wrong, ns }) => wrong === which && ns < limit).map(({ ns }) => ns);
  return welch(timesOf('first'), timesOf('last'));
};

/** `open` repeats the comparison with another secret in another place. */
const measureOne = (open: () => Comparison): TimingFigure => {
  const { name, leaks } = open();
  const figures = Array.from({ length: rounds }, () => measureRound(open())).toSorted((a, b) => a.t - b.t);
  const middle = figures[rounds >> 1];
  if (middle === undefined) throw new Error('there are no rounds');
  const measured = Math.abs(middle.t);
  const goal = leaks ? null : { wanted: `|t| below ${mostT}`, measured: measured.toFixed(1), met: measured < mostT };
  return { name, ...middle, everyT: figures.map(({ t }) => t), goal };
};

/** Any secrets of 64 bytes in one place in memory, because the place itself affects the time. */
const overBytes = (name: string, compare: (secret: Uint8Array, guess: Uint8Array) => boolean): Comparison => {
  const secret = randomBytes(64);
  const guess = Buffer.alloc(64);
  return {
    name,
    prepare: (wrong) => {
      secret.copy(guess);
      const at = wrong === 'first' ? 0 : guess.length - 1;
      guess[at] = (guess[at] ?? 0) ^ (1 + randomInt(255));
      return () => compare(secret, guess);
    },
  };
};

const overSignatures = (): Comparison => {
  const { key, characters } = core.generateSecretAccessKey();
  const steps = ['20261122', 'eu-central-1', 'kms-xks-proxy', 'aws4_request'];
  const signing = core.sigv4SigningKey(key, '20261122', 'eu-central-1', 'kms-xks-proxy');
  const derived = steps.reduce<Buffer>(
    (from, step) => createHmac('sha256', from).update(step).digest(),
    Buffer.concat([Buffer.from('AWS4'), characters]),
  );
  const head = 'POST\n/xks/bench/kms/xks/v1/health\n\nhost:bench\n\nhost\n';
  const scope = `AWS4-HMAC-SHA256\n20261122T120000Z\n${steps.join('/')}\n`;
  const body = Buffer.from('{}');
  const hex = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');
  const right = createHmac('sha256', derived)
    .update(`${scope}${hex(`${head}${hex(body)}`)}`)
    .digest('hex');
  core.wipe(characters);
  if (!core.sigv4Verify(signing, head, body, scope, right, '')) throw new Error('the right signature is refused');
  const bytes = Buffer.from(right, 'latin1');
  const digits = Buffer.from('0123456789abcdef', 'latin1');
  return {
    name: 'the signature of an XKS request',
    prepare: (wrong) => {
      const at = wrong === 'first' ? 0 : bytes.length - 1;
      const was = bytes[at] ?? 0;
      bytes[at] = digits[(digits.indexOf(was) + 1 + randomInt(15)) % 16] ?? 0;
      const guess = bytes.toString('latin1');
      bytes[at] = was;
      return () => core.sigv4Verify(signing, head, body, scope, guess, '');
    },
  };
};

const stopsEarly = (secret: Uint8Array, guess: Uint8Array): boolean => {
  for (let at = 0; at < secret.length; at += 1) if (secret[at] !== guess[at]) return false;
  return true;
};

export const measureTiming = (): readonly TimingFigure[] => {
  core.initialize({ arenaBytes: 1 << 20, allowUnlocked: true });
  return [
    () => overBytes('MACs, one-time codes, copies of keys', (secret, guess) => core.timingSafeEqual(secret, guess)),
    overSignatures,
    () => ({ ...overBytes('one that stops at the first wrong byte', stopsEarly), leaks: true }) as const,
  ].map(measureOne);
};

export const timingText = (figures: readonly TimingFigure[]): string =>
  table([
    [
      'comparison of secrets, guesses wrong in the',
      'first byte',
      'last byte',
      "Welch's t, median",
      'of all rounds',
      'goal',
    ],
    ...figures.map(({ name, firstNs, lastNs, t, everyT, goal }) => [
      name,
      `${firstNs.toFixed(0)} ns`,
      `${lastNs.toFixed(0)} ns`,
      t.toFixed(1),
      `${everyT[0]?.toFixed(1)} to ${everyT.at(-1)?.toFixed(1)}`,
      goal === null ? 'has to be found' : verdictText(goal),
    ]),
  ]);
