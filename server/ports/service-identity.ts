// What the service knows about itself.

export interface ServiceIdentity {
  readonly version: string;
  readonly startedAt: number;
  /** `https://HOST` or `https://HOST:PORT`, no slash at the end: the address that databases and people are given. */
  publicUrl(): string;
}
