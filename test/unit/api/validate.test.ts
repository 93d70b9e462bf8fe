// A body is read in one form of Unicode, so that the same name from two keyboards is one name.
import { z } from '@hono/zod-openapi';
import { expect, test } from 'vitest';
import { answerError } from '../../../server/fronts/api/api-problem.ts';
import { readJson, readQuery } from '../../../server/fronts/api/validate.ts';

const composed = 'Schl\u00fcssel';
const decomposed = 'Schlu\u0308ssel';
const schema = z.strictObject({ name: z.string() });

test('names in a body and in a query arrive in form NFC', () => {
  expect(decomposed).not.toBe(composed);
  expect(readJson(schema, 'application/json', Buffer.from(JSON.stringify({ name: decomposed })))).toEqual({
    name: composed,
  });
  expect(readQuery(schema, `https://localhost/api/x?name=${encodeURIComponent(decomposed)}`)).toEqual({
    name: composed,
  });
});
test('names that are escaped in a body arrive in form NFC, too', () => {
  const body = Buffer.from('{"name":"cafe\\u0301"}');
  expect(readJson(z.strictObject({ name: z.string() }), 'application/json', body)).toEqual({ name: 'caf\u00e9' });
});

test('two members that are the same in form NFC are one that is given twice', () => {
  const body = Buffer.from(`{"${composed}":1,"${decomposed}":2}`);
  expect(() => readJson(z.strictObject({}), 'application/json', body)).toThrow(
    expect.objectContaining({ errors: [{ path: composed, message: 'must appear only once' }] }),
  );
});

test('more combining marks than any language has are refused before they are put in order', () => {
  // In 64 KiB of them that took more than a second.
  const marks = (count: number): string => `a${'\u0315'.repeat(count)}${'\u0316'.repeat(count)}`;
  const refusal = expect.objectContaining({ code: 'validation', message: 'a letter has more than 30 combining marks' });
  const read = (text: string) => () => readJson(schema, 'application/json', Buffer.from(text));
  expect(read(JSON.stringify({ name: marks(16_000) }))).toThrow(refusal);
  expect(read(`{"name":"a${'\\u0315'.repeat(5_000)}${'\\u0316'.repeat(5_000)}"}`)).toThrow(refusal);
  expect(() => readQuery(schema, `https://localhost/api/x?name=${encodeURIComponent(marks(1_000))}`)).toThrow(refusal);
  expect(read(JSON.stringify({ name: marks(15) }))()).toEqual({ name: marks(15).normalize('NFC') });
});

const refusalOf = async (body: string, of: z.ZodObject): Promise<{ detail: string; errors?: object[] }> => {
  try {
    readJson(of, 'application/json', Buffer.from(body));
  } catch (error) {
    return (await answerError(error, 'r', () => {}).json()) as { detail: string; errors?: object[] };
  }
  throw new Error('the body was accepted');
};
test('a list that no request may have is refused before its items are compared with the schema', async () => {
  // The answer to 64 KiB of wrong items was 5.8 MB, and took more than 100 ms.
  const lists = z.strictObject({ list: z.array(z.enum(['a', 'b'])) });
  const detail = 'a list or an object in the body has more than 256 items';
  expect(await refusalOf(JSON.stringify({ list: Array(30_000).fill(0) }), lists)).toMatchObject({ detail });
  const members = Object.fromEntries(Array.from({ length: 257 }, (_, at) => [`m${at}`, 0]));
  expect(await refusalOf(JSON.stringify(members), lists)).toMatchObject({ detail });
});
test('an answer names the first fifty wrong fields', async () => {
  const lists = z.strictObject({ list: z.array(z.enum(['a', 'b'])) });
  const { errors } = await refusalOf(JSON.stringify({ list: Array(256).fill(0) }), lists);
  expect(errors).toHaveLength(50);
  expect(errors?.[0]).toMatchObject({ path: 'list.0' });
});

test.each(['[', '{"a":', '{"a":["]}",'])('a body that is nested deeply is refused before it is read: %s', (open) => {
  const schema = z.strictObject({ a: z.unknown() });
  const body = Buffer.from(open.repeat(8_000));
  expect(() => readJson(schema, 'application/json', body)).toThrow('nested deeper than 32 levels');
});
test('brackets in a text do not count as levels', () => {
  const schema = z.strictObject({ a: z.string() });
  const body = { a: `\\"${'[{'.repeat(100)}` };
  expect(readJson(schema, 'application/json', Buffer.from(JSON.stringify(body)))).toEqual(body);
});

test('U+0000 is refused in a body and in a query, escaped or not', () => {
  const refusal = expect.objectContaining({ code: 'validation', message: 'the character U+0000 is not allowed' });
  const body = Buffer.from('{"name":"a\\u0000b"}');
  expect(() => readJson(schema, 'application/json', body)).toThrow(refusal);
  expect(() => readQuery(schema, 'https://localhost/api/x?name=a%00b')).toThrow(refusal);
});
