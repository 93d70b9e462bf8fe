// The verifier key of an audit log as an option: what signs checkpoints, snapshots and backups.

import { parseVerifierKey, type Verifier } from '../base/checkpoint.ts';
import { CommandError } from './exit-codes.ts';
import { readTextFile } from './files.ts';

export const verifierHelp = 'verifierKey from dke audit log, or a file that contains it';

/** A verifier key, or a file that holds one. */
export const readVerifier = (text: string): Verifier => {
  const verifier = parseVerifierKey(text) ?? parseVerifierKey(text.includes('+') ? '' : readTextFile(text));
  if (verifier === null)
    throw new CommandError('config', `${text} is not a verifier key`, {
      hint: 'dke audit log shows it as verifierKey: NAME+ID+KEY; store it where the service cannot change it',
    });
  return verifier;
};
