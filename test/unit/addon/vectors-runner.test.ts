// The runner of vector files itself: it must not be possible to pass by losing a case.
import { expect, test } from 'vitest';
import { CoreError } from '../../../addon/core.ts';
import { runVectors, unlessRefused, type VectorCase, type VectorFile } from '../../support/vectors.ts';

const fileOf = (numberOfTests: number, ...tests: readonly VectorCase[]): VectorFile<unknown, VectorCase> => ({
  numberOfTests,
  testGroups: [{ tests }],
});
const given = (tcId: number, result: VectorCase['result'], ...flags: string[]): VectorCase => ({
  tcId,
  comment: '',
  flags,
  result,
});
const both = fileOf(2, given(1, 'valid'), given(2, 'invalid'));

test('a valid case that is refused and an invalid one that is accepted are wrong', () => {
  expect(runVectors(both, () => 'refused').wrong).toHaveLength(1);
  expect(runVectors(both, () => 'accepted').wrong).toHaveLength(1);
  const right = runVectors(both, (_, { result }) => (result === 'valid' ? 'accepted' : 'refused'));
  expect(right).toEqual({ wrong: [], ran: 2, skipped: {} });
});

test('a case that throws is wrong, whatever it should have been', () => {
  const throws = (): never => {
    throw new Error('broken');
  };
  expect(runVectors(both, throws).wrong).toHaveLength(2);
});

test('an acceptable case needs a rule', () => {
  const file = fileOf(1, given(1, 'acceptable', 'Odd'));
  const rules = { Odd: { accepted: true, because: 'it is harmless' } };
  expect(runVectors(file, () => 'accepted').wrong).toHaveLength(1);
  expect(runVectors(file, () => 'accepted', rules).wrong).toEqual([]);
  expect(runVectors(file, () => 'refused', rules).wrong).toHaveLength(1);
});

test('skipped cases are counted by their reason, lost cases are wrong', () => {
  expect(runVectors(both, () => ({ skip: 'too long' }))).toEqual({ wrong: [], ran: 0, skipped: { 'too long': 2 } });
  expect(runVectors(fileOf(3, given(1, 'valid')), () => 'accepted').wrong).toHaveLength(1);
});

test('only a refusal of the input counts as refused', () => {
  const failing = (error: Error) => () => {
    throw error;
  };
  expect(unlessRefused(failing(new CoreError('authentication-failed', '')))).toBeNull();
  expect(() => unlessRefused(failing(new CoreError('internal', 'fault')))).toThrow('fault');
  expect(() => unlessRefused(failing(new TypeError('no function')))).toThrow('no function');
});
