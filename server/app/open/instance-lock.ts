// Two servers with copies of one data directory on one host: the second does not start. The data
// directory has a random value, which a copy has too. Its hash is the name of an abstract socket,
// which goes with the process. The name can be seen by other users of the host while a service has
// it, so that one of them can take it later: then the next name is used, which was never seen. Only
// who has the value answers the question for a name, and who does not answer keeps nothing from
// starting.

import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { writeDurably } from '../../base/durable-files.ts';
import type { Log } from '../../ports/log.ts';

const bytes = 32;
const answerMs = 2_000;
/**
 * An answer is for one name: who has taken one, and asks the service that has another, learns
 * nothing.
 */
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

/** The first name and its answer are those of versions that had one name only. */
const mark = (at: number): readonly string[] => (at === 0 ? [] : [String(at)]);
const nameOf = (value: string, at: number): string => `\0dke-${digest('name', value, ...mark(at)).slice(0, 40)}`;
const answerOf = (value: string, at: number, question: Buffer): string =>
  digest('answer', value, question.toString('hex'), ...mark(at));

/**
 * Connections of whatever process of the host: the oldest gives way, so that none keeps others from
 * asking.
 */
const mostAsking = 64;

/** Answers what releases the name; undefined: it is taken. */
const listen = (value: string, at: number): Promise<(() => Promise<void>) | undefined> =>
  new Promise((resolve, reject) => {
    const asking = new Set<Socket>();
    const server = createServer((socket) => {
      const [oldest] = asking;
      if (asking.size >= mostAsking) oldest?.destroy();
      asking.add(socket);
      const late = setTimeout(() => socket.destroy(), answerMs).unref();
      socket
        .on('error', () => undefined)
        .once('close', () => {
          clearTimeout(late);
          asking.delete(socket);
        });
      socket.once('data', (question: Buffer) => {
        if (question.length === bytes) socket.end(answerOf(value, at, question));
        else socket.destroy();
      });
    });
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen(nameOf(value, at), () => {
      server.unref();
      resolve(async () => {
        const closed = once(server, 'close');
        server.close();
        for (const each of asking) each.destroy();
        await closed;
      });
    });
  });

/** Who has the name: a process with the value, another one, or none. */
const ask = (value: string, at: number): Promise<'copy' | 'other' | 'none'> =>
  new Promise((resolve) => {
    const question = randomBytes(bytes);
    let answer = '';
    const socket = connect(nameOf(value, at), () => void socket.write(question));
    const end = (error?: Error): void => {
      clearTimeout(late);
      socket.destroy();
      const isNone = (error as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED';
      if (isNone) resolve('none');
      else resolve(answer === answerOf(value, at, question) ? 'copy' : 'other');
    };
    const late = setTimeout(() => end(), answerMs);
    socket.setEncoding('latin1').on('data', (text: string) => {
      answer = (answer + text).slice(0, 2 * bytes + 1);
    });
    socket.on('error', end).on('end', () => end());
  });

/**
 * A name is seen only while a service has it: who takes one after each start needs so many starts.
 */
const mostNames = 16;

/**
 * Answers what releases it; undefined: another server of this host has the value. Each has the
 * first name that is free, and asks who has any of the others, so that who takes the names that
 * were seen before still hides no copy.
 */
export const lockInstance = async (path: string, log: Log): Promise<(() => Promise<void>) | undefined> => {
  const value = readValue(path);
  let own: (() => Promise<void>) | undefined;
  const release = async (): Promise<void> => own?.();
  let taken = 0;
  for (let at = 0; at < mostNames; at += 1) {
    const made = own === undefined ? await listen(value, at) : undefined;
    if (made !== undefined) {
      own = made;
      continue;
    }
    const found = await ask(value, at);
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
