/** Resolves in the next round of the event loop: requests that have arrived are answered first. */
export const otherWork = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
