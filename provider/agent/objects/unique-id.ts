// Identifiers that no other process has: UUID version 4 (RFC 9562, 5.4), of the core's random
// bytes. Those of Node follow from a state that two copies of one running machine have both, and
// the service takes the second request with one identifier for a repeat of the first.
import { core } from '../../../addon/core.ts';

export const uniqueId = (): string => {
  const bytes = Buffer.alloc(16);
  core.random(bytes);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
};

/**
 * Identifiers for what ends with this process: one drawn beginning, and a number of 48 bits. Copies
 * of a running machine have equal ones, of which none leaves its own process.
 */
export const idsOfProcess = (): (() => string) => {
  const beginning = uniqueId().slice(0, -12);
  let made = 0;
  return () => {
    made += 1;
    return beginning + made.toString(16).padStart(12, '0');
  };
};
