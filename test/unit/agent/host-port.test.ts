// What the socket thread hands to the main thread: so much of each configuration at a time that no
// user's calls wait behind all of another's.
import type { MessagePort } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { HostPort, type LogNotice, type Question, type Reply } from '../../../provider/agent/threads/bridge.ts';

type Call = Extract<Question, { readonly kind: 'call' }>;
type Open = Extract<Question, { readonly kind: 'open' }>;

const caller = { requestId: 'r', instance: '-' };
const request = { route: 'refresh', handle: null, head: {}, raw: null } as const;
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('calls of one configuration wait for their turn, calls of another do not, and how long they waited is said', async () => {
  const posted: Question[] = [];
  const port = new HostPort(
    { postMessage: (question: Question) => void posted.push(question) } as unknown as MessagePort,
    () => undefined,
  );
  const calls = (context: number): Call[] =>
    posted.filter((each): each is Call => each.kind === 'call' && each.context === context);
  const open = async (context: number) => {
    const opened = port.open(null, { pid: 1, uid: context, gid: context, groups: [] }, null);
    const { id } = posted.at(-1) as Open;
    port.deliver({ id, kind: 'opened', context, spinUs: 0, keyCheckMs: 0, isTraced: false });
    return opened;
  };
  const answer = ({ id }: Question): void =>
    port.deliver({ id, kind: 'answered', answer: {}, raw: new Uint8Array(0), epoch: 0 } satisfies Reply);

  const [one, other] = [await open(1), await open(2)];
  const many = Array.from({ length: 500 }, () => one.door.call(request, caller));
  await settle();
  const atOnce = calls(1).length;
  expect(atOnce).toBeLessThanOrEqual(64);
  const single = other.door.call(request, caller);
  await settle();
  expect(calls(2)).toHaveLength(1);
  answer(calls(2)[0] as Call);
  await single;

  let answered = 0;
  while (answered < many.length) {
    answer(calls(1)[answered++] as Call);
    await settle();
    expect(calls(1).length).toBeLessThanOrEqual(answered + atOnce);
  }
  await Promise.all(many);
  expect(calls(1)).toHaveLength(many.length);
  expect(calls(1).at(-1)?.caller.waitedMs).toBeGreaterThan(0);
});

test('lines of one user do not fill the way to the main thread; those of others pass, and what was left out is counted', () => {
  const posted: LogNotice[] = [];
  const port = new HostPort(
    { postMessage: (notice: LogNotice) => void posted.push(notice) } as unknown as MessagePort,
    () => undefined,
  );
  const line = (uid: number) => port.log({ context: null, level: 'warn', fields: { uid }, message: 'refused' });
  for (let at = 0; at < 100_000; at += 1) line(70_001);
  expect(posted.length).toBeLessThan(50_000);
  const before = posted.length;
  line(70_002);
  expect(posted.slice(before)).toMatchObject([{ kind: 'log', fields: { uid: 70_002 }, message: 'refused' }]);
});
