// Whether a person is at this page. What it asks again on its own while no one is there makes no
// session last longer.

/** How long a person who does nothing is still taken to be there, in milliseconds. */
const presentMs = 60_000;
let presentAt = Date.now();

/** A person has pressed or moved something. */
export const notePresence = (): void => {
  presentAt = Date.now();
};
export const isPresent = (): boolean => Date.now() - presentAt <= presentMs;
