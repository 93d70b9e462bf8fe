// What databases do, put together.

import type { Ports } from '../../ports/ports.ts';
import { authenticateApplication } from './authenticate-application.ts';
import { createTokenObject, generateTokenKey, generateTokenKeyPair, importTokenKey } from './create-token-object.ts';
import { destroyTokenObject } from './destroy-token-object.ts';
import { heldObjects } from './held-objects.ts';
import { deriveTokenKey, unwrapTokenKey } from './make-token-key.ts';
import { readTokenObjects } from './read-token-object.ts';
import type { TdeOperations } from './tde-operations.ts';
import { updateTokenObject } from './update-token-object.ts';
import { tokenKeyUses } from './use-token-key.ts';
import { withdrawRequest } from './withdraw-request.ts';
import { wrapTokenKey } from './wrap-token-key.ts';

export const createTdeOperations = (ports: Ports): TdeOperations => ({
  ...readTokenObjects(ports),
  ...heldObjects(ports),
  ...tokenKeyUses(ports),
  authenticate: authenticateApplication(ports),
  generateKey: generateTokenKey(ports),
  generateKeyPair: generateTokenKeyPair(ports),
  createObject: createTokenObject(ports),
  importKey: importTokenKey(ports),
  wrap: wrapTokenKey(ports),
  unwrap: unwrapTokenKey(ports),
  derive: deriveTokenKey(ports),
  updateObject: updateTokenObject(ports),
  destroyObject: destroyTokenObject(ports),
  withdraw: withdrawRequest(ports),
});
