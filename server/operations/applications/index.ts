// TDE groups and applications, put together.

import type { Ports } from '../../ports/ports.ts';
import type { Approvals } from '../approvals/governed-operation.ts';
import type { ApplicationOperations, TdeGroupOperations } from './applications-operations.ts';
import { createGroup } from './create-group.ts';
import { moveApplication } from './move-application.ts';
import { readApplications } from './read-applications.ts';
import { readGroups } from './read-groups.ts';
import { registerApplication } from './register-application.ts';
import { removeAccessGuid } from './remove-access-guid.ts';
import { renameApplication, renameGroup } from './rename.ts';
import { rotateAccessGuid } from './rotate-access-guid.ts';
import { setCallers } from './set-callers.ts';
import { setCompatibility } from './set-compatibility.ts';
import { switchApplication } from './switch-application.ts';

export const createTdeGroupOperations = (ports: Ports, approvals: Approvals): TdeGroupOperations => ({
  ...readGroups(ports),
  ...renameGroup(ports, approvals),
  create: createGroup(ports),
});

export const createApplicationOperations = (ports: Ports, approvals: Approvals): ApplicationOperations => ({
  ...readApplications(ports),
  ...moveApplication(ports, approvals),
  register: registerApplication(ports),
  enable: switchApplication(ports, 'enabled'),
  disable: switchApplication(ports, 'disabled'),
  rename: renameApplication(ports),
  setCompatibility: setCompatibility(ports),
  setCallers: setCallers(ports),
  rotateAccessGuid: rotateAccessGuid(ports),
  removeAccessGuid: removeAccessGuid(ports),
});
