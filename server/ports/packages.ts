// The packages for database hosts that the service distributes.

export interface DistributedPackage {
  /** The file's name. */
  readonly name: string;
  readonly package: string;
  readonly version: string;
  readonly kind: 'deb' | 'rpm';
  readonly architecture: 'x86_64' | 'aarch64';
  /** Bytes. */
  readonly size: number;
  /** 64 hexadecimal digits. */
  readonly sha256: string;
}

export interface DistributedPackages {
  /** Sorted by name. Empty where no folder is configured. 'unavailable' where it cannot be read. */
  list(): Promise<readonly DistributedPackage[]>;
  /**
   * The file's bytes, once they match the checksum: 'unavailable' if they do not, 'not-found' for a
   * name that is not listed.
   */
  open(name: string): Promise<AsyncIterable<Uint8Array>>;
}
