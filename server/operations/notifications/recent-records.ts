// How far back records of the audit log are shown as notifications.

/** How long it is shown that an administrator, or a certificate, was created on the host. */
export const createdDays = 30;

/**
 * Rows that one statement reads: few enough that a request that arrives in the meantime notices no
 * delay.
 */
export const pageSize = 50;
