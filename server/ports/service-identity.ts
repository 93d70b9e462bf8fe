// What the service knows about itself.

export interface ServiceIdentity {
  readonly version: string;
  readonly startedAt: number;
  /** Whether the listener asks its callers for a certificate. */
  readonly asksClientCertificates: boolean;
  /** Whether the service is about to stop. */
  stopping(): boolean;
  /**
   * `https://HOST` or `https://HOST:PORT`, no slash at the end: the address that databases and
   * people are given.
   */
  publicUrl(): string;
  /**
   * The certificate (PEM) that a database host has to trust for this address; null: that of a
   * public or a separately installed authority.
   */
  authority(): string | null;
}
