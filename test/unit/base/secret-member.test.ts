// The secret member of a body: read as bytes, written as bytes, with the same result as JSON and
// Base64.
import { expect, test } from 'vitest';
import { decodeBase64, takeMember, writeWithSecret } from '../../../server/base/secret-member.ts';

test('a member is taken at its depth only, and its characters leave the body', () => {
  const body = Buffer.from(
    '{"EncryptionContext":{"Plaintext":"no"}, "Note":"\\"Plaintext\\":", "Plaintext" : "YW\\/j"}',
  );
  expect(takeMember(body, 'Plaintext', 1)?.toString()).toBe('YW/j');
  const rest = JSON.parse(body.toString()) as Record<string, unknown>;
  expect(rest).toMatchObject({ EncryptionContext: { Plaintext: 'no' }, Note: '"Plaintext":' });
  expect(String(rest.Plaintext).trim()).toBe('');
  expect(takeMember(Buffer.from('{"Plaintext":1}'), 'Plaintext', 1)).toBeNull();
  expect(takeMember(Buffer.from('{"Plaintext":"abc'), 'Plaintext', 1)).toBeNull();
});

test('Base64 is written as Buffer writes it, and read back', () => {
  for (let length = 0; length < 70; length += 1) {
    const secret = Buffer.from(Array.from({ length }, (_, index) => (index * 37 + length) & 0xff));
    const answer = JSON.parse(writeWithSecret({ a: 1 }, 'Plaintext', secret).toString()) as { Plaintext: string };
    expect(answer).toEqual({ a: 1, Plaintext: secret.toString('base64') });
    expect(decodeBase64(Buffer.from(answer.Plaintext))).toEqual(secret);
  }
});

test.each(['A', 'AB', 'ABC', 'A===', 'AB=C', 'AA=A', '====', 'AB==', 'AAB=', 'AA-_', 'A A=', 'AA==AA=='])(
  'Base64 that is not canonical is refused: %s',
  (text) => {
    expect(decodeBase64(Buffer.from(text))).toBeNull();
  },
);
