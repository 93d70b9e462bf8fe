// Checks a new password: the domain's rules as an error of the service.

import { ServiceError } from '../../base/service-error.ts';
import { faultOfPassword } from '../../domain/password.ts';

/** 'validation', saying which rule it breaks. */
export const checkPassword = (password: Uint8Array, userName: string): void => {
  const fault = faultOfPassword(password, userName);
  if (fault !== undefined)
    throw new ServiceError('validation', `the password ${fault}`, {
      hint: 'use a sentence; any character is allowed, including spaces',
    });
};
