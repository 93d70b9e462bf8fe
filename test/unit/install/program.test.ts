// Which configuration the processes of a program use, by the mode and group of the program and the place of the file
// (provider/install/program.ts). Other owners need root.
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ownerOfNumbers } from '../../../provider/install/owner.ts';
import { checkProgram } from '../../../provider/install/program.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log('skipped: programs of other owners need root');
const folder = mkdtempSync(join(tmpdir(), 'dke-program-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const [oracle, oinstall, asmadmin] = [54_321, 54_322, 54_323];
const owner = ownerOfNumbers(oracle, oinstall);
const etc = join(folder, 'etc');
mkdirSync(etc);
let count = 0;

const file = (path: string, uid: number, gid: number, mode: number): string => {
  writeFileSync(path, '');
  chownSync(path, uid, gid);
  chmodSync(path, mode);
  return path;
};
const program = (mode: number, gid = asmadmin): string => file(join(folder, `oracle-${count++}`), oracle, gid, mode);
const conf = (where: string, uid = oracle, mode = 0o600): string =>
  file(join(where, `${count++}.toml`), uid, oinstall, mode);
const check = (of: string, path: string) =>
  checkProgram(of, path, owner, { folder: etc, fallback: '/etc/dke/pkcs11.toml' });

describe.runIf(isRoot)('processes of a program', () => {
  test('without such bits use the file that the variable names, wherever it is', () => {
    const path = conf(folder);
    expect(check(program(0o755), path)).toMatchObject({ state: 'ok', evidence: expect.stringContaining(path) });
  });
  test.each([
    ['outside the folder of the administrator', () => conf(folder), /it is not below .*etc\)/],
    ['of another user', () => conf(etc, 0), /belongs to uid 0 and not to uid 54321/],
    ['that others can read', () => conf(etc, oracle, 0o640), /its mode is 640 and not 600/],
    ['that does not exist', () => join(etc, 'none.toml'), /there is no such file/],
  ])('with mode 6751 of another group ignore a file %s, and the other databases’ file is named', (_, make, why) => {
    const found = check(program(0o6751), make());
    expect(found).toMatchObject({ state: 'failed', fix: expect.stringContaining(`${etc}/NAME.toml`) });
    expect(found.evidence).toMatch(why);
    expect(found.evidence).toContain('and use /etc/dke/pkcs11.toml');
  });
  test('with mode 6751 use a file that an administrator prepared, for every user who starts them', () => {
    const path = conf(etc);
    const { state, evidence } = check(program(0o6751), path);
    expect(state).toBe('ok');
    expect(evidence).toMatch(/mode 6751.*\(AT_SECURE\) use .*other OS users start \(AT_SECURE\) use /);
  });
  test('with the group of the database’s user are secure only for others', () => {
    const path = conf(folder);
    const { state, evidence } = check(program(0o6751, oinstall), path);
    expect(state).toBe('failed');
    expect(evidence).toMatch(/starts use .*; processes that other OS users start \(AT_SECURE\) ignore /);
  });
});
