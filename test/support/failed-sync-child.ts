// A store that is opened in a process of its own, so that its calls can be struck (strikes.ts): it
// says `ready`, and behind a line on its standard input makes two changes one after the other. The
// last line contains their results, and how often the store reported its loss.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { openStore } from '../../server/adapters/store/store.ts';
import { systemClock } from '../../server/base/time.ts';

const [, , path = ''] = process.argv;
let fatal = 0;
const store = await openStore({
  path,
  clock: systemClock,
  authenticateRow: () => '',
  onFatal: () => {
    fatal += 1;
  },
});
const change = (name: string): Promise<string> =>
  store
    .write((tx) => tx.settings.set(name, 'made'))
    .then(
      () => 'acknowledged',
      (error: Error) => error.message,
    );
await change('before');
process.stdout.write('ready\n');
await once(createInterface({ input: process.stdin }), 'line');
const first = await change('first');
const second = await change('second');
const found = await store.read.settings.get('second');
process.stdout.write(`${JSON.stringify({ first, second, found: found ?? null, fatal })}\n`);
process.exit();
