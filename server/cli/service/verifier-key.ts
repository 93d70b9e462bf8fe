// The verifier key of an audit log as an option: what signs checkpoints, snapshots and backups.

import { existsSync } from 'node:fs';
import { parseVerifierKey, type Verifier } from '../../base/checkpoint.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import { readTextFile } from '../terminal/secret-files.ts';

export const verifierHelp = 'verifierKey from dke audit log, or a file that contains it';

const parse = (given: string): readonly [text: string, verifier: Verifier] => {
  // A key has a plus sign, and the name of a file may have one.
  const isFile = parseVerifierKey(given) === null && (!given.includes('+') || existsSync(given));
  const text = isFile ? readTextFile(given).trim() : given;
  const verifier = parseVerifierKey(text);
  if (verifier === null)
    throw new CommandError('config', `${given} is not a verifier key`, {
      hint: 'dke audit log shows it as verifierKey: NAME+ID+KEY; store it where the service cannot change it',
    });
  return [text, verifier];
};
/** A verifier key, or a file that holds one. */
export const readVerifier = (given: string): Verifier => parse(given)[1];
/** The text of a verifier key, which a service is sent. */
export const verifierText = (given: string): string => parse(given)[0];
