// The standard's numbers, for tests.
export { CKK, CKO } from '../../provider/schema/constants.ts';
/** CK_UNAVAILABLE_INFORMATION, as handlers write it. */
export const CKM_UNAVAILABLE = -1;
