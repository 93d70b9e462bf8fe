// Settings in the database that decide something: they steer what is destroyed, proved or served,
// so that their rows have authentication codes and are part of the set of policy rows. Everything
// else that work leaves for later (cursors, receipts, counters) is a mark: a plain setting.

/** Every decision, and what a wrong value would do. A name is never given to another decision. */
export const decisionNames = [
  'rotation-asked', // without it a rotation that was requested is not done
  'erasure-started', // a later time calls keys unrecoverable that the run has not covered
  'erasure-covered', // a later time leaves destroyed keys without a run
  'erasure-copies', // without a name a copy of the database is not waited for
  'snapshots-erased-until', // a later time leaves destroyed keys in snapshots
  'snapshot-folder', // another mark takes an empty folder for the one with the snapshots
  'newest-restore', // an erasure run does not see that a restore has made copies since its walk
  'copies-adopted', // without it, what earlier versions knew of copies is read again
  'erased-adopted', // without it, how many keys are erased from files is taken from rows of earlier versions again
  'default-tenant', // requests without a tenant reach another one
  'first-token', // the first administrator token is replaced by another one, which is shown
  'audit-origin', // checkpoints are of a log of another name
  'restored', // without it a restored backup is served before it is confirmed
  'deadline-clock', // deletions are due earlier
] as const;
export type DecisionName = (typeof decisionNames)[number];

export const isDecision = (name: string): name is DecisionName => decisionNames.some((each) => each === name);
