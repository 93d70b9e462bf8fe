// Loaded into each thread of a server (NODE_OPTIONS): all of them collect what nothing refers to
// when SIGPWR comes, so that what its memory is afterwards is what it keeps. V8 does so on its own
// some time later, and in a thread that has little to do, much later.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as typeof globalThis.gc;
const now = (): void => void collect?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
const others = new BroadcastChannel('collect');
if (isMainThread)
  process.on('SIGPWR', () => {
    now();
    others.postMessage('now');
  });
else others.onmessage = now;
others.unref();
