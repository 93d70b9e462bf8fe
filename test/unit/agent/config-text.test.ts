// A fuzz target: whatever a pkcs11.toml says, it is a configuration within the bounds of its
// fields, or a ConfigError without the credential.
import { expect, test } from 'vitest';
import { ConfigError, logLevels, parseConfig } from '../../../provider/agent/settings/config.ts';
import { ownUser } from '../../../provider/agent/settings/user-files.ts';

const guid = '3f0a7c52-aaaa-4bbb-8ccc-1234567890ab';
const fields = [
  `server_url = "https://kms.example:8443/tde/v1/${guid}/db01"`,
  `access_token = "${guid}"`,
  'ca_file = "/etc/dke/ca.pem"',
  'client_certificate = "/c"',
  'client_key = "/k"',
  'connect_timeout_ms = 50',
  'call_timeout_ms = 600000',
  'log_dir = "/var/log"',
  'log_level = "debug"',
  'spin_us = 1000',
  'key_check_ms = 0',
  'wait_seconds = 600',
];
const noise = [
  '[table]',
  '=',
  '"',
  '#',
  '\0',
  '\u0416',
  '1e400',
  'inf',
  '[[x]]',
  '{}',
  '..',
  "'''",
  '__proto__ = 1',
  '-1',
  '\n',
  '%2e%2e',
  '%',
  '%zz',
  '?x',
  '@',
];

test('any text is a configuration within its bounds, or an error that does not quote the credential', () => {
  let seed = 44;
  const below = (n: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * n);
  };
  let accepted = 0;
  for (let n = 0; n < 5000; n++) {
    const lines = fields.filter((_, at) => at < 2 || below(2) === 0);
    for (let changes = below(3); changes > 0; changes--) {
      const at = below(lines.length);
      const line = lines[at] ?? '';
      const from = below(line.length);
      lines[at] = line.slice(0, from) + (noise[below(noise.length)] ?? '') + line.slice(from + below(4));
    }
    try {
      const config = parseConfig('/p', lines.join('\n'), ownUser());
      accepted++;
      expect(logLevels).toContain(config.logLevel);
      expect(config.spinUs).toBeLessThanOrEqual(1000);
      expect(config.waitSeconds).toBeLessThanOrEqual(600);
      expect(config.callTimeoutMs).toBeLessThanOrEqual(600_000);
      expect(config.redactedUrl).not.toContain(config.accessToken);
      for (const path of [config.caFile, config.logDir, config.clientCertificate?.key ?? null])
        expect(path ?? '/').toMatch(/^\//);
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      expect((error as Error).message).not.toContain(guid);
    }
  }
  expect(accepted).toBeGreaterThan(100);
});
