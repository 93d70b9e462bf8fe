// Identifiers: UUID version 7 (RFC 9562 section 5.7), lower-case text. They sort by the time they were made, so that a
// cursor is an id, and their 16 bytes are what key records bind. Identifiers are compared byte for byte, case included.

import { randomFillSync } from 'node:crypto';

/** The owner of the service's own secrets; never a tenant that a person sees. */
export const serviceTenantId = '00000000-0000-0000-0000-000000000000';

const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

let lastTime = 0;
let lastSequence = 0;
// Random bytes are drawn for many ids at once: the call costs more than the bytes.
const pool = Buffer.alloc(4096);
let poolUsed = pool.length;
const scratch = Buffer.alloc(16);

/** Ids made by one process are strictly increasing, also within one millisecond and when the clock steps back. */
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
  pool.copy(scratch, 8, poolUsed, poolUsed + 8);
  poolUsed += 8;
  scratch.writeUIntBE(lastTime, 0, 6);
  scratch.writeUInt16BE(0x7000 | lastSequence, 6);
  scratch[8] = 0x80 | ((scratch[8] ?? 0) & 0x3f);
  const hex = scratch.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
};

export const isId = (text: string): boolean => pattern.test(text);

/** The 16 bytes of an id. Throws RangeError when the text is no id. */
export const idBytes = (id: string): Buffer => {
  if (!isId(id)) throw new RangeError('not an identifier');
  return Buffer.from(id.replaceAll('-', ''), 'hex');
};
