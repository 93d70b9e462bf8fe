// What the log says of an error: what caused it, too, with the codes and words of those who
// refused.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defaultConfig } from '../../server/app/config/config.ts';
import { openLogs } from '../../server/app/open/logs.ts';
import { ServiceError } from '../../server/base/service-error.ts';
import { sharedFolder } from '../support/folders.ts';

const folder = sharedFolder();

test('the causes of an error are in its line: words of PostgreSQL, and an error of OAuth', async () => {
  const destination = join(folder, 'service.log');
  const logs = openLogs({ log: { ...defaultConfig(folder).log, destination }, accessLog: undefined });
  const said = Object.assign(new Error('password authentication failed for user "dke"'), { code: '28P01' });
  logs.log.error('a change failed', {
    error: new ServiceError('unavailable', 'the database does not answer', { hint: 'start PostgreSQL', cause: said }),
  });
  const refused = Object.assign(new Error('server responded with an error'), {
    error: 'invalid_client',
    error_description: 'the secret expired',
  });
  logs.log.warn('a sign-in failed', { error: new Error('no tokens', { cause: refused }) });
  await logs.end();
  const lines = readFileSync(destination, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
  expect(lines).toMatchObject([
    {
      error: {
        message: 'the database does not answer',
        hint: 'start PostgreSQL',
        causes: [{ message: 'password authentication failed for user "dke"', code: '28P01' }],
      },
    },
    { error: { causes: [{ error: 'invalid_client', error_description: 'the secret expired' }] } },
  ]);
});
