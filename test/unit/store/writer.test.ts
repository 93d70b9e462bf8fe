// What a commit waits for: the disk, unless every unit in it may be lost.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createWriter, type Writer } from '../../../server/adapters/store/transactions/commit-writer.ts';

const nothing = async (): Promise<void> => undefined;

test('a commit is durable when one of its units is, and only then', async () => {
  const begun: boolean[] = [];
  const writer = createWriter(
    {
      begin: async (durable) => {
        begun.push(durable);
      },
      prepare: nothing,
      commit: nothing,
      rollback: nothing,
      savepoint: nothing,
      releaseSavepoint: nothing,
      rollbackToSavepoint: nothing,
      endOnlyUnit: () => undefined,
    },
    (error) => error,
  );
  await writer.submit(nothing, { durable: false });
  await writer.submit(nothing);
  // Units that arrive during a commit wait for it and share the next one.
  let waiting: Promise<void>[] = [];
  await writer.submit(
    async () => {
      waiting = [writer.submit(nothing, { durable: false }), writer.submit(nothing)];
    },
    { durable: false },
  );
  await Promise.all(waiting);
  expect(begun).toEqual([false, true, false, true]);
});

test('nothing is written during a pause, and what waited is written after it', async () => {
  const done: string[] = [];
  const say = (what: string) => async (): Promise<void> => {
    done.push(what);
  };
  const writer = createWriter(
    {
      begin: say('begin'),
      prepare: nothing,
      commit: say('commit'),
      rollback: nothing,
      savepoint: nothing,
      releaseSavepoint: nothing,
      rollbackToSavepoint: nothing,
      endOnlyUnit: () => undefined,
    },
    (error) => error,
  );
  let resume: () => void = () => undefined;
  const paused = writer.pause(async () => {
    done.push('pause');
    await new Promise<void>((resolve) => {
      resume = resolve;
    });
  });
  const written = writer.submit(say('unit'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(done).toEqual(['pause']);
  resume();
  await Promise.all([paused, written]);
  expect(done).toEqual(['pause', 'begin', 'unit', 'commit']);
  await expect(writer.pause(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  await writer.submit(say('after'));
  expect(done.at(-2)).toBe('after');
});

describe('background units', () => {
  /** A writer that notes each commit with the units in it. */
  const noted = () => {
    const commits: string[][] = [];
    let units: string[] = [];
    const writer = createWriter(
      {
        begin: async () => {
          units = [];
        },
        prepare: nothing,
        commit: async () => {
          commits.push(units);
        },
        rollback: nothing,
        savepoint: nothing,
        releaseSavepoint: nothing,
        rollbackToSavepoint: nothing,
        endOnlyUnit: () => undefined,
      },
      (error) => error,
    );
    const unit = (name: string) => async (): Promise<void> => {
      units.push(name);
    };
    return { commits, writer, unit };
  };

  test('callers go first, and each background unit has its own commit', async () => {
    const { commits, writer, unit } = noted();
    let waiting: Promise<void>[] = [];
    await writer.submit(async () => {
      waiting = [
        writer.submit(unit('run 1'), { background: true }),
        writer.submit(unit('run 2'), { background: true }),
        writer.submit(unit('caller 1')),
        writer.submit(unit('caller 2')),
      ];
    });
    await Promise.all(waiting);
    expect(commits).toEqual([[], ['caller 1', 'caller 2'], ['run 1'], ['run 2']]);
  });

  test('a background unit follows every few batches, however many callers come', async () => {
    const { commits, writer, unit } = noted();
    let inBackground: Promise<void> | undefined;
    let left = 20;
    const next = async (): Promise<void> => {
      await unit('caller')();
      inBackground ??= writer.submit(unit('run'), { background: true });
      // The next caller is there before this one's commit.
      if (left > 0) last = writer.submit(next);
      left -= 1;
    };
    let last = writer.submit(next);
    await inBackground;
    for (let awaited: Promise<void> | undefined; awaited !== last; await awaited) awaited = last;
    await inBackground;
    const at = commits.findIndex(([name]) => name === 'run');
    expect(at).toBeGreaterThan(1);
    expect(at).toBeLessThan(10);
    expect(commits).toHaveLength(22);
  });
});

/** A writer whose database answers on the test's command, and whose clock only the test moves. */
const stallable = () => {
  const log: string[] = [];
  const hanging = new Map<string, PromiseWithResolvers<void>>();
  const reached = new Map<string, PromiseWithResolvers<void>>();
  let now = 0;
  const step = (name: string) => async (): Promise<void> => {
    log.push(name);
    reached.get(name)?.resolve();
    await hanging.get(name)?.promise;
  };
  const writer = createWriter(
    {
      begin: step('begin'),
      prepare: step('prepare'),
      commit: step('commit'),
      rollback: step('rollback'),
      savepoint: step('savepoint'),
      releaseSavepoint: step('release'),
      rollbackToSavepoint: step('back'),
      endOnlyUnit: () => log.push('end of the only unit'),
    },
    (error) => error,
    {
      afterMs: 5_000,
      now: () => now,
      undone: (forMs) => new Error(`undone after ${forMs}`),
      unknown: (forMs) => new Error(`unknown after ${forMs}`),
      onLate: () => log.push('late'),
    },
  );
  return {
    writer,
    log,
    /** From now on this step does not end; resolves when it has started. */
    hang: (name: string): Promise<void> => {
      hanging.set(name, Promise.withResolvers());
      const begun = Promise.withResolvers<void>();
      reached.set(name, begun);
      return begun.promise;
    },
    goOn: (name: string): void => {
      hanging.get(name)?.resolve();
      hanging.delete(name);
    },
    pass: (ms: number): void => {
      now += ms;
      vi.advanceTimersByTime(ms);
    },
  };
};

/** Submits units that share a commit. */
const inOneBatch = <T>(writer: Writer, units: readonly (() => Promise<T>)[]): readonly Promise<T>[] => {
  // The units wait behind the pause, so that all of them are queued.
  void writer.pause(nothing);
  return units.map((unit) => writer.submit(unit));
};

describe('savepoints', () => {
  const failing = () => Promise.reject(new Error('no'));

  test('a unit that throws among others is rolled back alone', async () => {
    const { writer, log } = stallable();
    const [first, second, third] = inOneBatch<unknown>(writer, [async () => 1, failing, async () => 3]);
    await expect(second).rejects.toThrow('no');
    expect(await Promise.all([first, third])).toEqual([1, 3]);
    const unit = ['savepoint', 'release'];
    expect(log).toEqual(['begin', ...unit, 'savepoint', 'back', 'release', ...unit, 'prepare', 'commit']);
  });

  test('the only unit of a transaction has none: when it throws, the transaction is rolled back', async () => {
    const { writer, log } = stallable();
    await writer.submit(nothing);
    await expect(writer.submit(failing)).rejects.toThrow('no');
    expect(log).toEqual(['begin', 'end of the only unit', 'prepare', 'commit', 'begin', 'rollback']);
  });
});

describe('several nodes', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('wait for a batch that takes long no longer than for a short one: what is left of it comes next', async () => {
    const { writer, log, pass } = stallable();
    const slow = async (): Promise<void> => {
      pass(200);
      log.push('work');
    };
    await Promise.all(
      inOneBatch(
        writer,
        Array.from({ length: 5 }, () => slow),
      ),
    );
    const unit = ['savepoint', 'work', 'release'];
    const end = ['prepare', 'commit'];
    expect(log).toEqual(['begin', ...unit, ...unit, ...unit, ...end, 'begin', ...unit, ...unit, ...end]);
  });

  test('a unit that was left for the next batch is refused once when nothing moves', async () => {
    const { writer, hang, goOn, pass } = stallable();
    const slow = async (): Promise<void> => pass(600);
    const waiting = hang('commit');
    const [first, second] = inOneBatch(writer, [slow, slow]).map((unit) =>
      unit.then(
        () => 'done',
        (error: unknown) => String(error),
      ),
    );
    await waiting;
    pass(5_000);
    expect(await first).toContain('unknown');
    expect(await second).toContain('undone');
    goOn('commit');
    await vi.waitFor(() => writer.submit(nothing), { timeout: 300_000 });
  });
});

describe('a database that gives no sign', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('in a commit: its units are told that the outcome is unknown, those that wait that nothing was changed, and new ones so at once', async () => {
    const { writer, log, hang, goOn, pass } = stallable();
    const begun = hang('commit');
    const first = expect(writer.submit(nothing)).rejects.toThrow('unknown after 5000');
    await begun;
    const second = expect(writer.submit(nothing)).rejects.toThrow('undone after 5000');
    pass(4_999);
    expect(writer.waiting()).toBe(1);
    pass(1);
    await Promise.all([first, second]);
    await expect(writer.submit(nothing)).rejects.toThrow('undone after 5000');
    goOn('commit');
    await vi.waitFor(() => expect(log).toContain('late'), { timeout: 300_000 });
    expect(log).toEqual(['begin', 'end of the only unit', 'prepare', 'commit', 'late']);
    await expect(writer.submit(async () => 'well again')).resolves.toBe('well again');
    expect(log.filter((what) => what === 'late')).toHaveLength(1);
  });

  test('before a commit: what was refused is not committed', async () => {
    // How it is excluded: not started, rolled back alone, or with the whole transaction.
    const endings = {
      begin: ['begin', 'prepare', 'commit'],
      savepoint: ['begin', 'savepoint', 'back', 'release', 'prepare', 'commit'],
      release: ['begin', 'savepoint', 'release', 'prepare', 'rollback'],
      prepare: ['begin', 'savepoint', 'release', 'savepoint', 'release', 'prepare', 'rollback'],
    };
    for (const [where, ending] of Object.entries(endings)) {
      const { writer, log, hang, goOn, pass } = stallable();
      const begun = hang(where);
      const refused = inOneBatch(writer, [nothing, nothing]).map((unit) =>
        expect(unit).rejects.toThrow('undone after 5000'),
      );
      await begun;
      pass(5_000);
      await Promise.all(refused);
      goOn(where);
      // Refused at once until the step has ended.
      await vi.waitFor(() => writer.submit(async () => log.push('well again')), { timeout: 300_000 });
      expect(log.slice(0, log.lastIndexOf('begin'))).toEqual(ending);
    }
  });

  test('before a commit with one unit: it is rolled back with its transaction', async () => {
    const { writer, log, hang, goOn, pass } = stallable();
    const begun = hang('prepare');
    const refused = expect(writer.submit(nothing)).rejects.toThrow('undone after 5000');
    await begun;
    pass(5_000);
    await refused;
    goOn('prepare');
    await vi.waitFor(() => writer.submit(async () => log.push('well again')), { timeout: 300_000 });
    expect(log.slice(0, log.lastIndexOf('begin'))).toEqual(['begin', 'end of the only unit', 'prepare', 'rollback']);
  });

  test('a statement that ends is a sign: a long unit of work is waited for', async () => {
    const { writer, pass } = stallable();
    const unit = Promise.withResolvers<string>();
    const begun = Promise.withResolvers<void>();
    const long = writer.submit(() => {
      begun.resolve();
      return unit.promise;
    });
    const behind = writer.submit(async () => 'behind');
    await begun.promise;
    for (let at = 0; at < 10; at++) {
      pass(4_000);
      writer.moved();
    }
    unit.resolve('long');
    expect(await Promise.all([long, behind])).toEqual(['long', 'behind']);
  });
});
