// Timeouts of a database host that are long enough for a busy machine, because these tests are not
// about speed.

/** Lines of pkcs11.toml: the lines of the test, and generous times where it sets none. */
export const patient = (lines = ''): string =>
  lines +
  ['connect_timeout_ms', 'call_timeout_ms']
    .filter((name) => !new RegExp(`^${name}\\b`, 'm').test(lines))
    .map((name) => `${name} = 20000\n`)
    .join('');
