// The built library, and what its calls return. Database processes load this some hundred times a
// run: it imports no part of a service.
import { resolve } from 'node:path';
import { returnValueName } from '../../provider/schema/return-values.ts';

export const library = resolve(import.meta.dirname, '../../build/provider/1.0/libdke_pkcs11.so');

/** The name of the return value of a call: CKR_OK when it does not throw. */
export const rvOf = (call: () => unknown): string => {
  try {
    call();
    return 'CKR_OK';
  } catch (error) {
    // pkcs11js knows the names of 2.20 only: the number tells.
    const { code, message } = error as { code?: unknown; message: string };
    const number = typeof code === 'number' && code > 0 ? code : Number(/CKR_\w+:(\d+)/.exec(message)?.[1]);
    if (Number.isInteger(number)) return returnValueName(number);
    throw error;
  }
};
