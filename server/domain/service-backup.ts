// A backup of the whole service, as its receipt says.

export interface ServiceBackup {
  readonly backupId: string;
  readonly at: number;
  readonly bytes: number;
}
