// The container image, made by the real builder and run as its configuration says: a first day in a container without a shell, without
// capabilities and with a root file system that cannot be written; the same volume afterwards; volumes and secrets as Kubernetes mounts them.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { image } from '../../provider/packaging/image.ts';
import { makeAuthority } from '../support/authority.ts';
import { openConsoleApi } from '../support/console-api.ts';
import { type Bundle, type Container, startContainer, unpackImage, whyNoContainer } from '../support/container.ts';
import { freePort } from '../support/daemon.ts';
import { missingOnOldSystems } from '../support/elf.ts';
import { until } from '../support/host.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

const builder = resolve(import.meta.dirname, '../../provider/packaging/main.ts');
const whyNot = whyNoContainer();
if (whyNot !== undefined) console.info(`the container image is not tested: ${whyNot}`);
const folder = mkdtempSync(join(tmpdir(), 'dke-container-'));
const archive = (out: string): string => join(folder, out, 'dke-image_1.0.0_amd64.oci.tar');
const make = (out: string, umask: string, ...options: string[]): string => {
  const script = `umask ${umask}; exec "$@"`;
  const builderLine = [process.execPath, builder, '--kind', 'oci', '--out', join(folder, out), ...options];
  execFileSync('sh', ['-c', script, 'sh', ...builderLine], {
    stdio: 'pipe',
    env: { ...process.env, SOURCE_DATE_EPOCH: '1700000000' },
  });
  return readFileSync(join(folder, out, 'SHA256SUMS'), 'utf8');
};

let bundle: Bundle;
let running: Container | undefined;
let port: number;

/** Everything of the root file system that a write would change. */
const stateOfRoot = (): readonly string[] =>
  readdirSync(bundle.rootfs, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((path) => {
      const { mode, uid, gid, size, mtimeMs } = lstatSync(join(bundle.rootfs, path));
      return [path, mode.toString(8), uid, gid, size, mtimeMs].join(' ');
    });

const listening = (container: Container): Promise<true> =>
  until('the service listens', async () => {
    if (container.child.exitCode !== null) throw new Error(`the container ended: ${container.log()}`);
    return container.log().includes('listening on https://') ? true : undefined;
  });

const makeVolume = (name: string, owner: number, mode: number): string => {
  const path = join(folder, name);
  mkdirSync(path);
  chownSync(path, owner, image.user);
  chmodSync(path, mode);
  return path;
};
/** The image's own dke.toml, on a free port of this host's loopback. */
const configure = (name: string, more = ''): string => {
  const path = join(folder, name);
  mkdirSync(path);
  const toml = readFileSync(join(bundle.rootfs, 'etc/dke/dke.toml'), 'utf8')
    .replace(`port = ${image.port}`, `port = ${port}`)
    .replace('host = "0.0.0.0"', 'host = "127.0.0.1"');
  writeFileSync(join(path, 'dke.toml'), `${toml}${more}`);
  return path;
};

beforeAll(async () => {
  if (whyNot !== undefined) return;
  chmodSync(folder, 0o755);
  make('out', '022', '--fast');
  bundle = unpackImage(archive('out'), join(folder, 'image'), `${image.name}:1.0.0`);
  port = await freePort();
});
afterAll(async () => {
  await running?.stop('KILL');
  rmSync(folder, { recursive: true, force: true });
});

describe.runIf(whyNot === undefined)('the container image', () => {
  test('is the same bytes with another umask, and its checksums are those of the files', () => {
    const sums = make('one', '022');
    expect(make('two', '077')).toBe(sums);
    expect(sums.trim().split('\n')).toHaveLength(2);
    execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: join(folder, 'two'), stdio: 'pipe' });
  });

  test('has a user that is not root, no shell, and each library that its programs need', () => {
    expect(bundle.config.process.user).toMatchObject({ uid: image.user, gid: image.user });
    const paths = readdirSync(bundle.rootfs, { recursive: true, encoding: 'utf8' });
    expect(paths.filter((path) => /(^|\/)(sh|bash|dash|busybox|apt|dpkg-query|curl)$/.test(path))).toEqual([]);
    const setuid = paths.filter((path) => (lstatSync(join(bundle.rootfs, path)).mode & 0o6000) !== 0);
    expect(setuid).toEqual([]);
    expect(lstatSync(join(bundle.rootfs, image.data))).toMatchObject({ uid: image.user, gid: image.user });
    expect(lstatSync(join(bundle.rootfs, image.data)).mode & 0o777).toBe(0o700);
    for (const name of ['bin/node', 'dke_core.node'])
      expect(missingOnOldSystems(join(bundle.rootfs, 'usr/lib/dke-image', name))).toEqual([]);
    expect(readlinkSync(join(bundle.rootfs, 'usr/bin/dke'))).toBe('../lib/dke-image/bin/dke');
    const bill = JSON.parse(readFileSync(join(bundle.rootfs, 'usr/share/doc/dke-image/sbom.cdx.json'), 'utf8')) as {
      readonly components: readonly { readonly name: string; readonly version: string }[];
    };
    const inside = readdirSync(join(bundle.rootfs, 'var/lib/dpkg/status.d'));
    expect(inside.sort()).toEqual(['libc6', 'libgcc-s1', 'libstdc++6']);
    for (const name of inside) {
      const version = bill.components.findLast((each) => each.name === name)?.version;
      expect(version, name).toMatch(/^\d/);
      expect(readFileSync(join(bundle.rootfs, 'usr/share/doc', name, 'copyright'), 'utf8')).not.toBe('');
    }
  });

  let endpoint: XksEndpoint;
  let sealed: Record<string, unknown>;
  let data: string;
  const server = () => ({ url: `https://127.0.0.1:${port}`, caFile: join(data, 'data/tls.crt') });

  test('serves a first day: token, health, a key, the XKS proxy; it writes to its volume alone', async () => {
    data = makeVolume('data', image.user, 0o700);
    const before = stateOfRoot();
    const volumes = [
      { from: data, to: image.data },
      { from: configure('etc'), to: image.configuration, readOnly: true },
    ] as const;
    running = startContainer(bundle, { volumes });
    await listening(running);
    const token = readFileSync(join(data, 'administrator-token'), 'utf8').trim();
    expect(running.log()).not.toContain(token);
    // As the image's health check asks, and as a person does: with the image's own environment.
    expect(running.exec(...image.health)).toMatch(/^status\s+healthy$/m);
    const inside = (...args: string[]) => (running as Container).exec(image.command, '--server', server().url, ...args);
    expect(inside('status')).toMatch(/^memory\.locked\s+true$/m);
    expect(inside('key', 'list')).not.toContain('error');

    endpoint = await createXksEndpoint({ server: server(), api: openConsoleApi(server(), token) }, 'cloud');
    const answer = await endpoint.encrypt(Buffer.from('a first day'));
    expect(answer.status).toBe(200);
    sealed = answer.body;
    expect(await running.stop('TERM')).toBe(0);
    expect(running.log()).toContain('"msg":"stopped"');
    expect(stateOfRoot()).toEqual(before);
  });

  test('goes on with the same volume, and keeps its keys', async () => {
    const volumes = [
      { from: data, to: image.data },
      { from: join(folder, 'etc'), to: image.configuration, readOnly: true },
    ] as const;
    running = startContainer(bundle, { volumes });
    await listening(running);
    const answer = await endpoint.at(server()).decrypt(sealed);
    expect(Buffer.from(String(answer.body.plaintext), 'base64').toString()).toBe('a first day');
    expect(await running.stop('TERM')).toBe(0);
  });

  test('runs on volumes as Kubernetes mounts them: a group of the pod, secrets of root that this group reads', async () => {
    const { certificate, key } = makeAuthority(folder, 'authority').issue({
      commonName: 'localhost',
      names: ['DNS:localhost', 'IP:127.0.0.1'],
    });
    const secrets = makeVolume('secrets', 0, 0o1777);
    mkdirSync(join(secrets, '..version'));
    symlinkSync('..version', join(secrets, '..data'));
    for (const [name, from] of [
      ['tls.crt', certificate],
      ['tls.key', key],
    ] as const) {
      const path = join(secrets, '..version', name);
      writeFileSync(path, readFileSync(from));
      chownSync(path, 0, image.user);
      chmodSync(path, 0o440);
      symlinkSync(join('..data', name), join(secrets, name));
    }
    const config = configure(
      'etc-secrets',
      '[tls]\ncertificate = "/run/secrets/dke/tls.crt"\nkey = "/run/secrets/dke/tls.key"\n',
    );
    running = startContainer(bundle, {
      volumes: [
        { from: makeVolume('claim', 0, 0o2775), to: image.data },
        { from: config, to: image.configuration, readOnly: true },
        { from: secrets, to: '/run/secrets/dke', readOnly: true },
      ],
    });
    await listening(running);
    expect(running.exec(...image.health)).toMatch(/^status\s+healthy$/m);
    expect(await running.stop('TERM')).toBe(0);
  });
});
