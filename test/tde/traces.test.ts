// Traces: the driver's own and that of OpenSC's pkcs11-spy between driver and token say the same,
// and hold no value. What the golden traces promise of statements is read here.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { presentTokens } from '../support/token.ts';
import { installed, run } from '../support/tools.ts';
import { goldenPath, readGolden } from './golden.ts';
import { librariesUnder } from './library.ts';
import { startDatabaseProcess } from './process.ts';
import { mechanismNumber, type ProfileName, profileNames, readProfile, writeDriverProfile } from './profile.ts';
import { type Stage, setStage } from './scenarios.ts';
import { readSpyTraces } from './spy.ts';
import { driverTraceOf, lineOf, readDriverTrace } from './trace.ts';
import { pin, startWorld, type World } from './world.ts';

const spy = ['/usr/lib/x86_64-linux-gnu/pkcs11-spy.so', '/usr/lib/pkcs11-spy.so', '/usr/lib64/pkcs11-spy.so'].find(
  existsSync,
);

describe.runIf(installed('opensc-pkcs11', spy ?? '/usr/lib/x86_64-linux-gnu/pkcs11-spy.so')).each(presentTokens)(
  'the driver under pkcs11-spy, on %s',
  (token) => {
    let world: World;
    let stage: Stage;
    beforeAll(async () => {
      world = await startWorld[token]();
    });
    afterAll(() => world.end());

    test.each(profileNames)('is traced by both alike: %s', async (name: ProfileName) => {
      const profile = readProfile(name);
      stage = await setStage(world, profile);
      const folder = join(world.folder, `spied-${name}`);
      const [library = ''] = librariesUnder(stage.host.base);
      const paths = { profile: `${folder}.profile`, trace: `${folder}.trace`, spied: `${folder}.spied` };
      writeDriverProfile(profile, paths.profile);
      const driven = startDatabaseProcess({
        role: 'fg0',
        name: 'ora_fg0_SPY',
        profile: paths.profile,
        trace: paths.trace,
        environment: { ...stage.host.environment, PKCS11SPY: library, PKCS11SPY_OUTPUT: paths.spied },
      });
      const does = async (...step: Parameters<typeof driven.step>) => {
        const answer = await driven.step(...step);
        expect(answer).toMatchObject({ ok: true });
        return answer;
      };
      await does('load', { library: spy ?? '' });
      await does('open', { pin, probe: true });
      const role = profile.masterKeys.at(-1)?.idPrefix ?? '';
      const { id = '' } = await does('generate', { role, keystore: 'H', about: 'of a test' });
      const under = { id, keystore: 'H', mechanism: mechanismNumber(profile.columnMechanism.value) };
      const file = { path: `${folder}.dbf`, file: 1 };
      await does('create-file', { ...file, bytes: profile.keyBytes.column.value, ...under });
      await does('unwrap', file);
      await does('find', { id, keystore: 'H', afresh: true });
      await does('heartbeat', { id });
      await does('destroy', { id });
      const { ok } = await driven.step('unwrap', file);
      expect(ok).toBe(false);
      await does('close');
      await driven.stop();

      const own = driverTraceOf(paths.trace).map(lineOf);
      const spied = readFileSync(paths.spied, 'utf8');
      expect(readSpyTraces(spied).map((calls) => calls.map(lineOf))).toEqual([own]);
      expect(own.length).toBeGreaterThan(25);
      // The spy's file contains the PIN; the converted trace and the driver's do not.
      const bytes = Buffer.from(pin).toString('hex').slice(0, 16).toUpperCase().match(/../g)?.join(' ') ?? '';
      expect(spied).toContain(bytes);
      expect(own.join('\n')).not.toContain(pin);
      const converted = await run(process.execPath, [join(import.meta.dirname, 'spy.ts'), paths.spied]);
      expect(converted.out.trimEnd().split('\n')).toEqual(['== process 1', ...own]);
      await stage.end();
    });
  },
);

describe.runIf(installed('opensc-pkcs11', spy ?? '/usr/lib/x86_64-linux-gnu/pkcs11-spy.so'))(
  'one file of pkcs11-spy',
  () => {
    test('that a whole instance has written is told apart by processes', async () => {
      const world = await startWorld.SoftHSM2();
      try {
        const { host } = await setStage(world, readProfile('12c-19c'));
        const [library = ''] = librariesUnder(host.base);
        const paths = { profile: join(world.folder, 'p'), spied: join(world.folder, 'spied') };
        writeDriverProfile(readProfile('12c-19c'), paths.profile);
        const environment = { ...host.environment, PKCS11SPY: library, PKCS11SPY_OUTPUT: paths.spied };
        const [one, two] = ['fg0', 'gen0'].map((role) =>
          startDatabaseProcess({
            role,
            name: `ora_${role}_SPY`,
            profile: paths.profile,
            trace: join(world.folder, role),
            environment,
          }),
        );
        if (one === undefined || two === undefined) throw new Error('two processes');
        // The processes take turns, the second one behind: it repeats every call number of the
        // first one.
        await one.step('load', { library: spy ?? '' });
        await two.step('load', { library: spy ?? '' });
        await one.step('open', { pin, probe: true });
        const { id = '' } = await one.step('generate', { role: '06', keystore: 'H', about: 'of a test' });
        await two.step('open', { pin });
        for (let round = 0; round < 4; round += 1) {
          await two.step('heartbeat', { id });
          await one.step('find', { id, keystore: 'H', afresh: true });
        }
        await one.stop();
        await two.stop();
        const own = [one, two].map(({ trace }) => driverTraceOf(trace).map(lineOf).join('\n'));
        const spyCalls = readSpyTraces(readFileSync(paths.spied, 'utf8')).map((calls) => calls.map(lineOf).join('\n'));
        expect(spyCalls.toSorted()).toEqual(own.toSorted());
      } finally {
        await world.end();
      }
    });
  },
);

describe('a golden trace', () => {
  /** The calls of one process between the creation of its last master key and its restart. */
  const part = (profile: ProfileName, scenario: string, process: string): readonly string[] => {
    const [, text = ''] = readGolden(goldenPath(profile, scenario)).split(`== ${process}\n`);
    const [own = ''] = text.split('\n\n');
    return own.split('\n');
  };

  test.each(['12c-19c', '23ai'] as const)('of a reverse migration decrypts and makes nothing: %s', (profile) => {
    const calls = part(profile, 'migration', 'ERP.fg0');
    // The last time that the process has the library loaded is the reverse migration's.
    const last = calls.slice(calls.lastIndexOf('C_OpenSession'));
    expect(last.some((line) => line.startsWith('C_Decrypt '))).toBe(true);
    expect(last.filter((line) => /^C_(Encrypt|GenerateKey|CreateObject|WrapKey)/.test(line))).toEqual([]);
  });

  test.each(profileNames)('of a migration makes and encrypts, and decrypts nothing: %s', (profile) => {
    const calls = part(profile, 'migration', 'ERP.fg0');
    const from = calls.findIndex((line) => line.startsWith('C_GenerateKey'));
    // What it reads after the migration stands behind the first row, which unwraps.
    const step = calls.slice(
      from,
      calls.findIndex((line) => line.startsWith('C_DecryptInit')),
    );
    expect(step.filter((line) => line.startsWith('C_Encrypt '))).not.toEqual([]);
    expect(step.filter((line) => /^C_(Decrypt|FindObjects)/.test(line))).toEqual([]);
  });

  test.each(profileNames)('asks for nothing but what a library for this database has to have: %s', (profile) => {
    const needed =
      /^C_(GetFunctionList|Initialize|Finalize|GetInfo|GetSlotList|GetSlotInfo|GetTokenInfo|GetMechanismList|GetMechanismInfo|OpenSession|CloseSession|CloseAllSessions|GetSessionInfo|Login|Logout|FindObjectsInit|FindObjects|FindObjectsFinal|GetAttributeValue|CreateObject|DestroyObject|GenerateKey|EncryptInit|Encrypt|DecryptInit|Decrypt)\b/;
    const lines = ['first-key', 'rotation', 'crash-recovery', 'standby', 'restore', 'destroyed'].flatMap((scenario) =>
      readGolden(goldenPath(profile, scenario)).split('\n'),
    );
    expect(lines.length).toBeGreaterThan(500);
    expect(lines.filter((line) => line !== '' && !line.startsWith('== ') && !needed.test(line))).toEqual([]);
  });

  test.each(profileNames)('opens without decrypting, and never asks for a value: %s', (profile) => {
    const text = readGolden(goldenPath(profile, 'rotation'));
    expect(text).not.toMatch(/C_GetAttributeValue[^\n]*\bVALUE:/);
    const gen0 = part(profile, 'rotation', 'ERP.gen0');
    expect(gen0.filter((line) => line.startsWith('C_Decrypt'))).toEqual([]);
  });
});

describe('the readers of traces', () => {
  test('a driver’s line becomes a call', () => {
    const line = 'C_GenerateKey\tmechanism=1080:0 template=3:52,161:8\t13\t1500\n';
    const [call] = readDriverTrace(line);
    expect(call).toMatchObject({ function: 'C_GenerateKey', took: 1500 });
    expect(call === undefined ? '' : lineOf(call)).toBe(
      'C_GenerateKey AES_KEY_GEN/0 [LABEL:52 VALUE_LEN:8] = CKR_ATTRIBUTE_VALUE_INVALID',
    );
  });

  test('a call that did not come back is left out of the spy’s, and values with it', () => {
    const text = [
      '0: C_FindObjectsInit',
      '2026-01-01 00:00:00.000',
      '[in] hSession = 0x1',
      '[in] pTemplate[2]: ',
      '    CKA_CLASS             CKO_SECRET_KEY       ',
      '    CKA_LABEL             000055921c6ac01b / 10',
      '    4F524143 4C452E54 4445',
      '     O R A C  L E . T  D E',
      'Returned:  0 CKR_OK',
      '',
      '1: C_FindObjects',
      '[in] ulMaxObjectCount = 0x2',
    ].join('\n');
    expect(readSpyTraces(text).map((calls) => calls.map(lineOf))).toEqual([['C_FindObjectsInit [CLASS:8 LABEL:10]']]);
  });
});
