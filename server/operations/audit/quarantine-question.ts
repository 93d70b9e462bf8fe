// What the forwarding of the audit log asks the quarantine (service/quarantine.ts), which has
// compared the log with its checkpoint.

export interface DoubtedLog {
  /** Undefined: there is no quarantine. */
  closed(): object | undefined;
  /** There is one, and the audit log may be older, incomplete or forged. */
  doubtsLog(): boolean;
}
