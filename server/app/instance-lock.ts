// Two servers with copies of one data directory on one host: the second does not start. The data directory has a random value, which a copy has too. Its hash
// is the name of an abstract socket, which goes with the process. The name can be seen by other users of the host while a service has it, so that one of them
// can take it later: then the next name is used, which was never seen. Only who has the value answers the question for a name, and who does not answer
// keeps nothing from starting.

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

/** Who has the name: a process with the value, another one, or none. */
const ask = (name: string, value: string): Promise<'copy' | 'other' | 'none'> =>
  new Promise((resolve) => {
    const question = randomBytes(bytes);
    let answer = '';
    const socket = connect(name, () => void socket.write(question));
    const end = (error?: Error): void => {
      clearTimeout(late);
      socket.destroy();
      const isNone = (error as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED';
      if (isNone) resolve('none');
      else resolve(answer === digest('answer', value, question.toString('hex')) ? 'copy' : 'other');
    };
    const late = setTimeout(() => end(), answerMs);
    socket.setEncoding('latin1').on('data', (text: string) => {
      answer = (answer + text).slice(0, 2 * bytes + 1);
    });
    socket.on('error', end).on('end', () => end());
  });

/** A name is seen only while a service has it: who takes one after each start needs so many starts. */
const mostNames = 16;

/**
 * Answers what releases it; undefined: another server of this host has the value. Each has the first name that is free, and asks who has any of the
 * others, so that who takes the names that were seen before still hides no copy.
 */
export const lockInstance = async (path: string, log: Log): Promise<(() => Promise<void>) | undefined> => {
  const value = readValue(path);
  let own: Server | undefined;
  const release = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      if (own === undefined) resolve();
      else own.close(() => resolve());
    });
  };
  let taken = 0;
  for (let at = 0; at < mostNames; at += 1) {
    const name = `\0dke-${digest('name', value, ...(at === 0 ? [] : [String(at)])).slice(0, 40)}`;
    const server = own === undefined ? await listen(name, value) : undefined;
    if (server !== undefined) {
      own = server;
      continue;
    }
    const found = await ask(name, value);
    if (found === 'copy') {
      await release();
      return undefined;
    }
    if (found === 'other') taken += 1;
  }
  if (taken > 0)
    log.warn(
      'another process of this host has a name of this instance and does not answer; other names are used to notice copies of the data directory',
      { path, names: taken },
    );
  if (own === undefined)
    log.error(
      'other processes of this host have all names of this instance: copies of the data directory are not noticed',
      {
        path,
      },
    );
  return release;
};
