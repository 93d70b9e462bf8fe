// Loaded into a server before its program (`--import`): the position of the database
// (server/adapters/store/node-state.ts) is not written, to measure what writing it costs.
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const { open } = files;
const nowhere = {
  write: async (_: Uint8Array, __: number, length: number) => ({ bytesWritten: length }),
  datasync: async () => undefined,
  close: async () => undefined,
};
files.open = (async (path, ...rest) =>
  /\/position$/.test(String(path)) ? nowhere : open(path, ...rest)) as typeof open;
syncBuiltinESMExports();
