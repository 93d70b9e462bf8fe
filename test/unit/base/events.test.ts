// Events between the parts of a service: server/base/events.ts.

import { expect, test } from 'vitest';
import { createEvents } from '../../../server/base/events.ts';

interface Told {
  readonly began: { readonly at: number };
  readonly ended: undefined;
}

test('listeners are called immediately, in the order in which they were added, with the event', () => {
  const events = createEvents<Told>();
  const heard: string[] = [];
  events.on('began', ({ at }) => heard.push(`first ${at}`));
  events.on('ended', () => heard.push('another event'));
  events.on('began', ({ at }) => heard.push(`second ${at}`));
  events.emit('began', { at: 7 });
  expect(heard).toEqual(['first 7', 'second 7']);
});

test('an event that has no listener is lost', () => {
  expect(() => createEvents<Told>().emit('ended', undefined)).not.toThrow();
});

test('a listener that throws keeps no other one from its event, and its error reaches the emitter', () => {
  const events = createEvents<Told>();
  const heard: string[] = [];
  const fault = new Error('the first one fails');
  events.on('ended', () => {
    throw fault;
  });
  events.on('ended', () => heard.push('second'));
  expect(() => events.emit('ended', undefined)).toThrow(fault);
  expect(heard).toEqual(['second']);
});

test('the errors of several listeners are thrown together', () => {
  const events = createEvents<Told>();
  const faults = [new Error('one'), new Error('two')];
  for (const fault of faults)
    events.on('ended', () => {
      throw fault;
    });
  let thrown: unknown;
  try {
    events.emit('ended', undefined);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toMatchObject({ message: 'listeners of ended failed', errors: faults });
});

test('a listener may emit another event', () => {
  const events = createEvents<Told>();
  const heard: string[] = [];
  events.on('began', () => events.emit('ended', undefined));
  events.on('began', () => heard.push('began'));
  events.on('ended', () => heard.push('ended'));
  events.emit('began', { at: 1 });
  expect(heard).toEqual(['ended', 'began']);
});
