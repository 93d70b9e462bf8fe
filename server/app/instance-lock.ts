// Two servers with copies of one data directory on one host: the second does not start. The data directory has a random value, which a copy has too. Its hash
// is the name of an abstract socket, which goes with the process. The name can be seen by other users of the host, so that one of them can take it: only who
// has the value answers the question for it, and who does not answer keeps nothing from starting.

import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { writeDurably } from '../base/durable-files.ts';
import type { Log } from '../ports/log.ts';

const bytes = 32;
const answerMs = 2_000;
const digest = (...parts: readonly string[]): string =>
  createHash('sha256')
    .update(['dke instance', ...parts].join(' '))
    .digest('hex');

const readValue = (path: string): string => {
  const known = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
  if (/^[0-9a-f]{64}$/.test(known)) return known;
  const value = randomBytes(bytes).toString('hex');
  writeDurably(path, `${value}\n`);
  return value;
};

/** Undefined: the name is taken. */
const listen = (name: string, value: string): Promise<Server | undefined> =>
  new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      socket.setTimeout(answerMs, () => socket.destroy()).on('error', () => undefined);
      socket.once('data', (question: Buffer) => {
        if (question.length === bytes) socket.end(digest('answer', value, question.toString('hex')));
        else socket.destroy();
      });
    });
    server.maxConnections = 4;
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen(name, () => {
      server.unref();
      resolve(server);
    });
  });

/** Whether the process that has the name has the value as well. */
const isAnswered = (name: string, value: string): Promise<boolean> =>
  new Promise((resolve) => {
    const question = randomBytes(bytes);
    let answer = '';
    const socket = connect(name, () => void socket.write(question));
    const end = (): void => {
      clearTimeout(late);
      socket.destroy();
      resolve(answer === digest('answer', value, question.toString('hex')));
    };
    const late = setTimeout(end, answerMs);
    socket.setEncoding('latin1').on('data', (text: string) => {
      answer = (answer + text).slice(0, 2 * bytes + 1);
    });
    socket.on('error', end).on('end', end);
  });

/** Answers what releases it; undefined: another server of this host has the value. */
export const lockInstance = async (path: string, log: Log): Promise<(() => Promise<void>) | undefined> => {
  const value = readValue(path);
  const name = `\0dke-${digest('name', value).slice(0, 40)}`;
  const server = await listen(name, value);
  if (server !== undefined)
    return () =>
      new Promise((resolve) => {
        server.close(() => resolve());
      });
  if (await isAnswered(name, value)) return undefined;
  log.warn(
    'another process of this host has the name of this instance and does not answer: copies of the data directory are not noticed',
    {
      path,
    },
  );
  return () => Promise.resolve();
};
