// A part of `npm run stress`: threads of several processes with messages of all sizes, while the
// agent is stopped, continued and killed. Each result is compared with OpenSSL's.
import { expect, test } from 'vitest';
import { mechanismRows } from '../../provider/agent/operations/mechanisms.ts';
import { mechanismName } from '../../provider/schema/mechanisms.ts';
import { runStress } from '../support/stress.ts';
import { isLong } from '../support/tiers.ts';

test('no byte is wrong, no call hangs, and session keys are lost only with their agent', async () => {
  const report = await runStress({
    processes: 2,
    threads: 8,
    largest: 1_200_000,
    seed: isLong ? Date.now() % 1_000_000 : 1,
    sanitizer: 'none',
    switches: true,
    // Three rounds use nearly all mechanisms.
    goesOn: (rounds, mechanisms) => rounds < 3 || (rounds < 20 && mechanisms < mechanismRows.length),
  });
  expect(report.findings).toEqual([]);
  expect(report.kills).toBeGreaterThanOrEqual(3);
  // A result of each mechanism was compared, and each way of calling was used.
  const expected = mechanismRows.map(({ type }) => mechanismName(type));
  expect(Object.keys(report.mechanisms).sort()).toEqual(expected.sort());
  expect(Object.keys(report.calls.calm)).toEqual(
    expect.arrayContaining([
      'C_Encrypt',
      'C_DecryptFinal',
      'C_DecryptVerifyUpdate',
      'C_DecryptMessage',
      'C_EncryptMessageNext',
      'C_Digest',
      'C_SignFinal',
      'C_VerifyFinal',
      'C_VerifyRecover',
      'C_CopyObject',
      'C_GenerateRandom',
    ]),
  );
  expect(report.bytes).toBeGreaterThan(1_000_000);
});
