// The test values of the standards, and what of them counts.
import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  encodeBase32,
  plainRecoveryCode,
  totpMessage,
  totpStep,
  totpSteps,
  truncateMac,
} from '../../../server/domain/one-time-password.ts';

const secret = Buffer.from('12345678901234567890');
const codeOf = (step: number): string =>
  Buffer.from(truncateMac(createHmac('sha1', secret).update(totpMessage(step)).digest())).toString();

test('HOTP: RFC 4226, appendix D', () => {
  const codes = ['755224', '287082', '359152', '969429', '338314', '254676', '287922', '162583', '399871', '520489'];
  expect(codes.map((_, counter) => codeOf(counter))).toEqual(codes);
});

// The RFC shows eight digits; six are the last ones of them.
test.each([
  [59, '94287082'],
  [1_111_111_109, '07081804'],
  [1_111_111_111, '14050471'],
  [1_234_567_890, '89005924'],
  [2_000_000_000, '69279037'],
  [20_000_000_000, '65353130'],
])('TOTP: RFC 6238, appendix B, at %i s', (seconds, code) => {
  expect(codeOf(totpStep(seconds * 1000))).toBe(code.slice(-6));
});

test('this step counts and its neighbours, and none that was used', () => {
  const now = 90_000;
  expect(totpSteps(now, 0)).toEqual([2, 3, 4]);
  expect(totpSteps(now, 3)).toEqual([4]);
  expect(totpSteps(now, 4)).toEqual([]);
});

test('Base32: RFC 4648, section 10, without padding', () => {
  const vectors = {
    '': '',
    f: 'MY',
    fo: 'MZXQ',
    foo: 'MZXW6',
    foob: 'MZXW6YQ',
    fooba: 'MZXW6YTB',
    foobar: 'MZXW6YTBOI',
  };
  for (const [text, code] of Object.entries(vectors))
    expect(Buffer.from(encodeBase32(Buffer.from(text))).toString()).toBe(code);
});

test('a recovery code may be typed in small letters, with spaces and hyphens', () => {
  expect(Buffer.from(plainRecoveryCode(Buffer.from(' abcd-EF23 ghij\t'))).toString()).toBe('ABCDEF23GHIJ');
});
