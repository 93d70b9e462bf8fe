// What a caller of the agent meets as a limit: one table, from which the code and docs/limits.md
// come. The limits of one OS user that an operator sets are in user-limits.ts.
import { longestLabel, maxEnvelope } from '../../../server/contract/tde.ts';

export interface Limit {
  readonly what: string;
  readonly most: number;
  readonly unit: string;
  readonly beyond: string;
}

const row = (what: string, most: number, unit: string, beyond: string): Limit => ({ what, most, unit, beyond });

/** What a message to the service has beside its data, at most. */
const headBytes = 8192;

export const limits = {
  configFile: row('`pkcs11.toml`', 64 * 1024, 'bytes', '`CKR_DEVICE_ERROR`, cause `config-unreadable`'),
  pemFile: row(
    'each PEM file that it names',
    512 * 1024,
    'bytes',
    '`CKR_DEVICE_ERROR`, cause `ca-file` or `client-certificate`',
  ),
  configurations: row(
    'different `pkcs11.toml` files of an OS user, open at a time',
    32,
    'files',
    '`CKR_DEVICE_MEMORY`, cause `user-limit`',
  ),
  openingAtOnce: row('configurations of an OS user that are being opened', 16, 'files', 'the next one waits'),
  callsAtOnce: row(
    'calls of one configuration that are sent to the service or about to be',
    40,
    'calls',
    'the next one waits, which is part of its time',
  ),
  filesAtOnce: row('files of an OS user that are being opened', 4, 'files', 'the next one waits'),
  fileMs: row('opening and reading a file', 1500, 'ms', '`CKR_DEVICE_ERROR`, cause of the file'),
  fileWork: row(
    'new or changed PEM files of an OS user, at once; then 1/16 of it a second; a byte of `pkcs11.toml` counts four times',
    4 << 20,
    'bytes',
    '`CKR_DEVICE_ERROR`, cause of the file',
  ),
  logLines: row(
    'lines of an OS user in the log of an agent for several users, after the first 2,000',
    20,
    'lines a second',
    'they are counted, and left out',
  ),
  label: row('`CKA_LABEL`', longestLabel, 'bytes', '`CKR_ATTRIBUTE_VALUE_INVALID`'),
  dataValue: row(
    '`CKA_VALUE` of a data object, and all of a template',
    maxEnvelope - headBytes,
    'bytes',
    '`CKR_DATA_LEN_RANGE`',
  ),
} as const satisfies Record<string, Limit>;
