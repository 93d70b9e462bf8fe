// What sinks that are reached over TLS share.

export interface SinkTls {
  /** PEM file of the authorities to trust instead of the public ones. */
  readonly ca: string | undefined;
  /** PEM files of our own certificate and key, for a peer that wants one. */
  readonly certificate: string | undefined;
  readonly key: string | undefined;
}
