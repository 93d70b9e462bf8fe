// How far back records of the audit log are shown as notifications.

/** How long it is shown that an administrator, or a certificate, was created on the host. */
export const createdDays = 30;

/** Of one statement: little enough that a request that comes in in the meantime does not notice. */
export const pageSize = 50;
