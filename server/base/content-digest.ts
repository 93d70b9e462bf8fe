// What the row of a token object says of the content beside it: adapters/store/rows/row-codes.ts
// compares them.

import { hash } from 'node:crypto';

/** 64 hexadecimal digits. */
export const contentDigest = (content: Uint8Array): string => hash('sha256', content, 'hex');
