// Keys and master keys, put together.

import type { Ports } from '../../ports/ports.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import { allowDecryption } from './allow-decryption.ts';
import { changeKey } from './change-key.ts';
import { createKey } from './create-key.ts';
import { destroyMasterKey } from './destroy-master-key.ts';
import type { KeyOperations, MasterKeyOperations } from './keys-operations.ts';
import { readKeys } from './read-keys.ts';
import { readMasterKeys } from './read-master-keys.ts';
import { rotateKey } from './rotate-key.ts';
import { softDeleteKey } from './soft-delete-key.ts';
import { switchKey } from './switch-key.ts';

export const createKeyOperations = (ports: Ports, approvals: Approvals): KeyOperations => ({
  ...readKeys(ports),
  create: createKey(ports),
  change: changeKey(ports),
  enable: switchKey(ports, 'enable'),
  disable: switchKey(ports, 'disable'),
  ...softDeleteKey(ports, approvals),
  rotate: rotateKey(ports),
});

export const createMasterKeyOperations = (ports: Ports, approvals: Approvals): MasterKeyOperations => ({
  ...readMasterKeys(ports),
  allowDecryption: allowDecryption(ports),
  ...destroyMasterKey(ports, approvals),
});
