// Who may read a file with a secret.

/**
 * The bits that its mode must not have. A secret is readable by its owner only. One that root gives
 * to the user of this process may be readable by a group, which root chose: secrets of Kubernetes
 * and of Compose come this way. PostgreSQL has the same rule for its key.
 */
export const forbiddenModeOf = (owner: number, user: number): number => (owner === 0 && user !== 0 ? 0o037 : 0o077);

/** For messages. */
export const requiredMode = '600 or 400 (640 or 440 when it belongs to root)';
