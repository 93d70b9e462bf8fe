// Which folder `dke provider` installs from, on a host that also has the command of the service.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { libraryName } from '../../../provider/install/layout.ts';
import { providerRoot } from '../../../provider/install/payload.ts';

const folder = mkdtempSync(join(tmpdir(), 'dke-provider-root-'));
afterAll(() => rmSync(folder, { recursive: true }));
const place = (name: string, library: string | undefined): string => {
  const root = join(folder, name);
  mkdirSync(join(root, library ?? ''), { recursive: true });
  if (library !== undefined) writeFileSync(join(root, library, libraryName), '');
  return root;
};

test('the command of the service installs what the package dke-provider has', () => {
  const [service, provider] = [place('service', undefined), place('provider', '1.0')];
  const checkout = place('checkout', 'build/provider/1.0');
  expect(providerRoot(service, provider)).toBe(provider);
  expect(providerRoot(provider, checkout)).toBe(provider);
  expect(providerRoot(checkout, provider)).toBe(checkout);
  // Neither has it: the error names this command.
  expect(providerRoot(service, join(folder, 'none'))).toBe(service);
});
