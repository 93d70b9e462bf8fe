// What a start says of a database that does not answer: a cause and what to do, never a fault of
// ours. The exit code lets a service manager start it again.
import { expect, test } from 'vitest';
import { parseConfig } from '../../../server/app/config/config.ts';
import { toStartError } from '../../../server/app/start-errors.ts';
import { ServiceError } from '../../../server/base/service-error.ts';
import { toldError } from '../../../server/base/start-error.ts';

const config = parseConfig('', null, '/srv/dke');

test.each([
  [
    new ServiceError('unavailable', 'the database dke on db has not answered for 5 s: nothing was changed'),
    'check the database and its host, then start the service again',
  ],
  [
    new ServiceError('unavailable', 'the database has not confirmed the change', {
      hint: 'look at its log',
      reason: 'unconfirmed',
    }),
    'look at its log',
  ],
  [new ServiceError('dependency-timeout', 'the store did not answer in time'), 'check the database'],
])('a start that meets "%s" says what to do', (error, fix) => {
  const told = toldError(toStartError(error, config));
  expect([told.class, told.exitCode]).toEqual(['store', 5]);
  expect(told.message).toContain(error.message);
  expect(told.message).toContain(fix);
  expect(told.message).not.toContain('report it');
});
