// OpenSSH with its keys on the token, through the built library to the real service, and through
// SoftHSM2: `ssh-keygen -D` lists the public keys, and `ssh -I` logs in to a server of the test's
// own, as the user who runs the test.
import { createPublicKey } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Daemon, freePort, startDaemon } from '../support/daemon.ts';
import { presentTokens, startTokens, type Token } from '../support/token.ts';
import { findProgram, installed, run } from '../support/tools.ts';

const present = installed('openssh-client', 'ssh', 'ssh-keygen') && installed('opensc', 'pkcs11-tool');
const serves = installed('openssh-server', 'sshd');

describe.runIf(present).each(presentTokens)('OpenSSH with %s', (name) => {
  let token: Token;
  let server: Daemon | undefined;
  const path = (file: string): string => join(token.folder, file);
  const access = (): string[] => ['--module', token.module, '--token-label', 'tool', '--login', '--pin', token.pin];

  beforeAll(async () => {
    token = await startTokens[name]();
    for (const [type, id] of [
      ['rsa:2048', '01'],
      ['EC:prime256v1', '02'],
    ] as const) {
      const made = await run(
        'pkcs11-tool',
        [...access(), '--keypairgen', '--key-type', type, '--id', id, '--label', id],
        token,
      );
      expect(made.code, made.complaints).toBe(0);
    }
  });
  afterAll(async () => {
    await server?.stop();
    await token.end();
  });

  const publicKeys = async (): Promise<Map<string, string>> => {
    const { code, out, complaints } = await run('ssh-keygen', ['-D', token.module], token);
    expect(code, complaints).toBe(0);
    return new Map(
      out
        .trim()
        .split('\n')
        .map((line) => [line.split(' ')[0] ?? '', line] as const),
    );
  };

  test('ssh-keygen -D lists the public keys of the token', async () => {
    const keys = await publicKeys();
    expect([...keys.keys()].sort()).toEqual(['ecdsa-sha2-nistp256', 'ssh-rsa']);
    await run(
      'pkcs11-tool',
      [...access(), '--read-object', '--type', 'pubkey', '--id', '01', '--output-file', path('rsa.der')],
      token,
    );
    const { n = '' } = createPublicKey({ key: readFileSync(path('rsa.der')), format: 'der', type: 'spki' }).export({
      format: 'jwk',
    });
    const listed = Buffer.from(keys.get('ssh-rsa')?.split(' ')[1] ?? '', 'base64');
    expect(listed.includes(Buffer.from(n, 'base64url'))).toBe(true);
  });

  describe.runIf(serves)('to a server', () => {
    let port: number;
    beforeAll(async () => {
      port = await freePort();
      await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path('host')]);
      // Whom sshd leaves its privileges to has this folder as its root.
      if (process.getuid?.() === 0 && !existsSync('/run/sshd')) mkdirSync('/run/sshd', { mode: 0o755 });
      writeFileSync(
        path('sshd.conf'),
        `HostKey ${path('host')}\nAuthorizedKeysFile ${path('authorized')}\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n` +
          `KbdInteractiveAuthentication no\nPermitRootLogin yes\nPidFile none\nListenAddress 127.0.0.1:${port}\nLogLevel VERBOSE\n`,
      );
      writeFileSync(path('known'), `[127.0.0.1]:${port} ${readFileSync(path('host.pub'), 'utf8')}`);
      // The PIN cannot be typed: sshd and ssh have no terminal here.
      writeFileSync(path('askpass'), `#!/bin/sh\necho ${token.pin}\n`);
      chmodSync(path('askpass'), 0o700);
      // sshd starts itself again for each connection, so it needs its absolute path.
      const program = findProgram('sshd') ?? '';
      server = await startDaemon(program, ['-D', '-e', '-f', path('sshd.conf')], { ready: /Server listening/ });
    });

    const askpass = (): NodeJS.ProcessEnv => ({ SSH_ASKPASS: path('askpass'), SSH_ASKPASS_REQUIRE: 'force' });
    const withToken = (): Readonly<Record<string, string>> => ({
      IdentityAgent: 'none',
      IdentityFile: 'none',
      PKCS11Provider: token.module,
    });
    const login = (identity = withToken()): ReturnType<typeof run> => {
      const options = { UserKnownHostsFile: path('known'), PreferredAuthentications: 'publickey', ...identity };
      const set = Object.entries(options).flatMap(([option, value]) => ['-o', `${option}=${value}`]);
      const to = ['-p', String(port), `${userInfo().username}@127.0.0.1`, 'echo "$SSH_CONNECTION"'];
      const environment = { ...token.environment, ...askpass() };
      return run('ssh', ['-F', '/dev/null', ...set, ...to], { environment });
    };

    test.each(['ssh-rsa', 'ecdsa-sha2-nistp256'])('ssh logs in with the %s key', async (type) => {
      writeFileSync(path('authorized'), `${(await publicKeys()).get(type) ?? ''}\n`);
      const { code, out, complaints } = await login();
      expect(code, complaints + (server?.printed() ?? '')).toBe(0);
      expect(out).toMatch(new RegExp(`^127\\.0\\.0\\.1 \\d+ 127\\.0\\.0\\.1 ${port}\\n$`));
    });
    test('ssh-agent keeps the token open, and logs in', async () => {
      writeFileSync(path('authorized'), `${(await publicKeys()).get('ssh-rsa') ?? ''}\n`);
      const socket = path('ssh-agent.sock');
      // `-P`: by default, ssh-agent loads libraries only from the system's folders.
      const keeper = await startDaemon('ssh-agent', ['-D', '-a', socket, '-P', '*'], {
        ...token,
        ready: /SSH_AUTH_SOCK/,
      });
      try {
        const environment = { ...token.environment, ...askpass(), SSH_AUTH_SOCK: socket };
        const added = await run('ssh-add', ['-s', token.module], { environment });
        expect(added.code, added.complaints).toBe(0);
        const listed = await run('ssh-add', ['-L'], { environment });
        expect(listed.out.match(/^(?:ssh-rsa|ecdsa-sha2-nistp256) /gm)).toHaveLength(2);
        const { code, complaints } = await login({ IdentityAgent: socket, IdentityFile: 'none' });
        expect(code, complaints + (server?.printed() ?? '')).toBe(0);
      } finally {
        await keeper.stop();
      }
    });
    test('a key of another is refused', async () => {
      writeFileSync(path('authorized'), readFileSync(path('host.pub')));
      const { code, complaints } = await login();
      expect(code).toBe(255);
      expect(complaints).toContain('Permission denied (publickey)');
    });
  });
});
