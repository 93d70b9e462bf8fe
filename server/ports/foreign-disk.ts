// Files that the service reads and writes while it runs, on disks that may hang. The first path says which disk. Every call has an end in total: it
// rejects when the disk does not answer in time, and what was begun may still be done later.

export interface ForeignDisk {
  /** The caller wipes secrets. */
  read(path: string): Promise<Buffer>;
  /** Replaces a file as a whole, durably. */
  replace(path: string, content: string): Promise<void>;
  exists(path: string): Promise<boolean>;
  /** Durable when it answers. */
  rename(from: string, to: string): Promise<void>;
  /** A file that may be there. Durable when it answers. */
  remove(path: string): Promise<void>;
}
