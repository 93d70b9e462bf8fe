// What a system of RPM has and Debian has not: a package with everything that ours require, which
// stands for the system, and Red Hat's own `alternatives`. Its source is chkconfig
// (github.com/fedora-sysv/chkconfig), which no archive here has: DKE_CHKCONFIG_SOURCE names a
// folder with it.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installed } from './tools.ts';

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

/** Builds the program, which needs no library of the system it runs on; undefined: not here. */
export const makeRedHatAlternatives = (folder: string): string | undefined => {
  const source = join(process.env.DKE_CHKCONFIG_SOURCE ?? '', 'alternatives.c');
  if (process.env.DKE_CHKCONFIG_SOURCE === undefined || !existsSync(source) || !installed('gcc', 'cc')) {
    console.log("Red Hat's alternatives is not tested: DKE_CHKCONFIG_SOURCE names no source of chkconfig");
    return undefined;
  }
  const program = join(folder, 'alternatives');
  const defined = ['-D_GNU_SOURCE', '-DVERSION="of the test"', '-DMERGED_SBIN=0'];
  execFileSync('cc', ['-O1', '-static', ...defined, '-o', program, source], { stdio: ['ignore', 'ignore', 'pipe'] });
  return program;
};
