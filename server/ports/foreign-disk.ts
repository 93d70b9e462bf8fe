// Files that the service reads and writes while it runs, on disks that may hang. The first path
// says which disk. Every call has an end in total: it rejects when the disk does not answer in
// time, and what was begun may still be done later.

export interface DiskFile {
  size(): Promise<number>;
  /** Reads `length` bytes; fewer at the end of the file. */
  read(at: number, length: number): Promise<Buffer>;
  /** All of them. */
  put(bytes: Uint8Array, at: number): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

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
  /**
   * `wx`: a new file, mode 0600. When its disk has not answered once, the file is no longer open.
   */
  open(path: string, flag: 'r' | 'r+' | 'wx'): Promise<DiskFile>;
  /** The names in a folder. */
  list(folder: string): Promise<readonly string[]>;
  /** Space on the disk of a folder, in bytes. */
  space(folder: string): Promise<{ readonly free: number; readonly size: number }>;
}
