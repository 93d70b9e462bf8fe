// An authenticator app: the code of a secret, now or a few steps away.
import { createHmac } from 'node:crypto';
import { totpMessage, totpStep, truncateMac } from '../../server/domain/one-time-password.ts';

const decodeBase32 = (text: string): Buffer => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const bits = [...text].map((letter) => alphabet.indexOf(letter).toString(2).padStart(5, '0')).join('');
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
};

export const codeOf = (secret: string, stepsAway = 0, now = Date.now()): string => {
  const mac = createHmac('sha1', decodeBase32(secret))
    .update(totpMessage(totpStep(now) + stepsAway))
    .digest();
  return Buffer.from(truncateMac(mac)).toString();
};
