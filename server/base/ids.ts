// Identifiers: UUID version 7 (RFC 9562 section 5.7), lower-case text. They sort by the time they
// were made, so that a cursor is an id, and their 16 bytes are what key records bind. Identifiers
// are compared byte for byte, case included.

import { randomFillSync } from 'node:crypto';

/** The owner of the service's own secrets; never a tenant that a person sees. */
export const serviceTenantId = '00000000-0000-0000-0000-000000000000';

const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

let lastTime = 0;
let lastSequence = 0;
// Random bytes are drawn for many ids at once: the call costs more than the bytes.
const pool = Buffer.alloc(4096);
let poolUsed = pool.length;
/**
 * The text, whose dashes stay where they are: one string is made of it, and no pieces that are put
 * together.
 */
const scratch = Buffer.from('00000000-0000-7000-8000-000000000000', 'latin1');
const digits = Buffer.from('0123456789abcdef', 'latin1');
/** Writes the lowest `count` hexadecimal digits of a number, from `at` on. */
const writeHex = (value: number, at: number, count: number): void => {
  let rest = value;
  for (let place = at + count - 1; place >= at; place -= 1) {
    scratch[place] = digits[rest & 15] as number;
    rest >>>= 4;
  }
};

/**
 * Ids made by one process are strictly increasing, also within one millisecond and when the clock
 * steps back.
 */
export const newId = (now: number): string => {
  if (now > lastTime) {
    lastTime = now;
    lastSequence = 0;
  } else {
    lastSequence += 1;
    if (lastSequence > 0xfff) {
      lastTime += 1;
      lastSequence = 0;
    }
  }
  if (poolUsed === pool.length) {
    randomFillSync(pool);
    poolUsed = 0;
  }
  // 48 bits: shifts take 32.
  const high = Math.floor(lastTime / 0x10000);
  writeHex(high, 0, 8);
  writeHex(lastTime - high * 0x10000, 9, 4);
  writeHex(lastSequence, 15, 3);
  writeHex(0x8000 | (pool.readUInt16BE(poolUsed) & 0x3fff), 19, 4);
  writeHex(pool.readUInt16BE(poolUsed + 2), 24, 4);
  writeHex(pool.readUInt32BE(poolUsed + 4), 28, 8);
  poolUsed += 8;
  return scratch.toString('latin1');
};

/**
 * No id that was made at this time or later is below it, and none that was made before is above.
 */
export const firstIdAt = (at: number): string => {
  const digits = Math.min(Math.max(Math.floor(at), 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`;
};

export const isId = (text: string): boolean => pattern.test(text);

/** The 16 bytes of an id. Throws RangeError when the text is not an id. */
export const idBytes = (id: string): Buffer => {
  if (!isId(id)) throw new RangeError('not an identifier');
  return Buffer.from(id.replaceAll('-', ''), 'hex');
};
