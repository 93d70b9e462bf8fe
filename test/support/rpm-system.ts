// A package with everything that ours require, which stands for the packages of a system of RPM.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Makes the package that provides what these require, into `folder`; answers its path. */
export const makeSystemPackage = (rpms: readonly string[], folder: string): string => {
  const wanted = rpms.flatMap((path) =>
    execFileSync('rpm', ['--query', '--package', '--requires', path], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
      .trim()
      .split('\n'),
  );
  const provides = [...new Set(wanted)].filter((each) => !each.startsWith('rpmlib('));
  mkdirSync(folder, { recursive: true });
  const spec = join(folder, 'system.spec');
  const head = 'Name: stands-for-system\nVersion: 1\nRelease: 1\nSummary: x\nLicense: x\nBuildArch: noarch\n';
  const lines = provides.map((each) => `Provides: ${each}\n`).join('');
  writeFileSync(spec, `${head}${lines}%description\nx\n%files\n`);
  execFileSync('rpmbuild', ['-bb', '--define', `_topdir ${folder}`, '--define', `_rpmdir ${folder}`, spec], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return join(folder, 'noarch/stands-for-system-1-1.noarch.rpm');
};
