// Looks up an OpenID provider, and prints the message for the user.
import { createOpenId } from '../../server/adapters/identity/open-id.ts';
import { quietLog } from './quiet-log.ts';

const provider = createOpenId(
  {
    ...{
      issuer: 'https://people.example',
      clientId: 'dke',
      clientSecret: undefined,
      label: 'People',
      scopes: 'openid',
    },
    ...{ ca: undefined, roleClaim: undefined, roles: new Map(), secondFactor: 'ours', tokenMs: 1 },
  },
  quietLog,
);
try {
  await provider.begin('https://keys.example/callback');
} catch (error) {
  process.stdout.write((error as Error).message);
}
// The look-up that is still under way would keep it for as long as the resolver tries.
process.exit(0);
