// What sinks that are reached over TLS share.

import type { ForeignDisk } from '../../ports/foreign-disk.ts';

export interface SinkTls {
  readonly read: ForeignDisk['read'];
  /** PEM file of the authorities to trust instead of the public ones. */
  readonly ca: string | undefined;
  /** PEM files of our own certificate and key, for a peer that wants one. */
  readonly certificate: string | undefined;
  readonly key: string | undefined;
}

/** Read at every connection: certificates are renewed. */
export const readSinkTls = async ({ read, ca, certificate, key }: SinkTls) => ({
  ...(ca === undefined ? {} : { ca: await read(ca) }),
  ...(certificate === undefined ? {} : { cert: await read(certificate) }),
  ...(key === undefined ? {} : { key: await read(key) }),
});
