// The faults of a game day, and what the documentation promises that people on duty see of each:
// alerts of docs/monitoring/alerts.yaml, the answer of /health, notifications, and the message of
// the service when it ends or refuses to start.

export interface Promised {
  /** The alert rules that fire. */
  readonly alerts: readonly string[];
  /** What /health answers in the meantime; null: nothing answers. */
  readonly health: string | null;
  /** In the inbox, within two rounds of the minute jobs. */
  readonly notifications: readonly string[];
  /** Pages that promise it. */
  readonly pages: readonly string[];
}

export const faults = {
  'killed server': {
    alerts: ['DkeDown'],
    health: null,
    notifications: [],
    pages: ['monitoring.md', 'faults.md'],
  },
  'killed agent': {
    // The library starts another one; the service sees no fault.
    alerts: [],
    health: '200 healthy',
    notifications: [],
    pages: ['databases/mariadb.md'],
  },
  'killed MariaDB': {
    alerts: [],
    health: '200 healthy',
    notifications: [],
    pages: ['databases/mariadb.md'],
  },
  'full disk': {
    alerts: ['DkeUnhealthy'],
    health: '200 degraded',
    // The inbox is in the database, which takes no changes.
    notifications: [],
    pages: ['monitoring.md', 'faults.md'],
  },
  'clock jump': {
    alerts: ['DkeClockJumped'],
    health: '200 healthy',
    notifications: ['clock.jumped'],
    pages: ['clock.md'],
  },
  'lost certificate': {
    // The service continues with the one that it has read; the next start refuses.
    alerts: ['DkeDown'],
    health: null,
    notifications: [],
    pages: ['dke.toml'],
  },
  'lost root key file': {
    alerts: ['DkeUnhealthy'],
    health: '503 unhealthy',
    notifications: ['health.failing'],
    pages: ['root-key.md'],
  },
  'older database': {
    alerts: ['DkeUnhealthy'],
    health: '503 quarantine',
    notifications: [],
    pages: ['root-key.md', 'backup.md'],
  },
  'deleted database file': {
    alerts: ['DkeUnhealthy'],
    health: '200 degraded',
    notifications: [],
    pages: ['faults.md'],
  },
} as const satisfies Readonly<Record<string, Promised>>;

export type Fault = keyof typeof faults;
export const allFaults = Object.keys(faults) as readonly Fault[];
export const ofMariadb: readonly Fault[] = ['killed agent', 'killed MariaDB'];
