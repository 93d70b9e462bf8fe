// Values that columns of several tables have.

import type { KeyUsage } from '../../../../domain/key.ts';

/**
 * A driver's bytes, not copied. SQLite keeps any value in any column: what is not bytes was written
 * from outside, and becomes none, which open nothing.
 */
export const toBuffer = (bytes: Uint8Array): Buffer =>
  bytes instanceof Uint8Array ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) : Buffer.alloc(0);

export const flag = (value: boolean): number => (value ? 1 : 0);

export const bytesOf = (value: Uint8Array | null): Buffer | null => (value === null ? null : toBuffer(value));

/**
 * Lists in a tampered row may be no JSON at all; such a row is refused by its integrity, so an
 * empty list does.
 */
export const parseUsages = (text: string): readonly KeyUsage[] => {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? (value as readonly KeyUsage[]) : [];
  } catch {
    return [];
  }
};

/** The texts of a JSON list; empty where a tampered row has no valid one. */
export const parseTags = (text: string | null): readonly string[] => {
  try {
    const value: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(value) ? value.filter((tag) => typeof tag === 'string') : [];
  } catch {
    return [];
  }
};
