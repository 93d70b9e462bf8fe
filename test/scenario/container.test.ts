// The container image, built by the real builder and run with its configuration: a first day in a
// container without a shell, without capabilities and with a root file system that cannot be
// written; the same volume afterwards; volumes and secrets as Kubernetes mounts them; and the
// commands of the page for Kubernetes, as printed, with a kubectl that enters these containers.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
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
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { image } from '../../provider/packaging/image.ts';
import { makeAuthority } from '../support/authority.ts';
import { openConsoleApi } from '../support/console-api.ts';
import {
  type Bundle,
  type Container,
  type ContainerOptions,
  startContainer,
  unpackImage,
  type Volume,
  whyNoContainer,
} from '../support/container.ts';
import { freePort } from '../support/daemon.ts';
import { missingOnOldSystems } from '../support/elf.ts';
import { until } from '../support/host.ts';
import { layCluster, layPod, type PodContainer, readManifests } from '../support/kubectl.ts';
import { blocksOf } from '../support/page-commands.ts';
import { startPostgres } from '../support/postgresql.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';

const packaging = resolve(import.meta.dirname, '../../server/packaging');
const builder = resolve(import.meta.dirname, '../../provider/packaging/main.ts');
const whyNot = whyNoContainer();
if (whyNot !== undefined) console.info(`the container image is not tested: ${whyNot}`);
const folder = mkdtempSync(join(tmpdir(), 'dke-container-'));
const archive = (out: string): string => join(folder, out, 'dke-image_1.0.0_amd64.oci.tar');
const make = (out: string, umask: string): string => {
  const script = `umask ${umask}; exec "$@"`;
  const builderLine = [process.execPath, builder, '--kind', 'oci', '--out', join(folder, out)];
  execFileSync('sh', ['-c', script, 'sh', ...builderLine], {
    stdio: 'pipe',
    env: { ...process.env, SOURCE_DATE_EPOCH: '1700000000' },
  });
  return readFileSync(join(folder, out, 'SHA256SUMS'), 'utf8');
};

let bundle: Bundle;
let sums: string;
const running: Container[] = [];
const stopped: (() => Promise<void>)[] = [];
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
    if (container.exitCode() !== undefined) throw new Error(`the container ended: ${container.log()}`);
    return container.log().includes('listening on https://') ? true : undefined;
  });

const start = async (options: ContainerOptions): Promise<Container> => {
  const container = startContainer(bundle, options);
  running.push(container);
  await listening(container);
  return container;
};

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
  sums = make('out', '022');
  bundle = unpackImage(archive('out'), join(folder, 'image'), `${image.name}:1.0.0`);
  port = await freePort();
});
afterAll(async () => {
  for (const each of running) await each.stop('KILL');
  for (const stop of stopped) await stop();
  rmSync(folder, { recursive: true, force: true });
});

describe.runIf(whyNot === undefined)('the container image', () => {
  test('is the same bytes with another umask, and its checksums are those of the files', () => {
    expect(make('again', '077')).toBe(sums);
    expect(sums.trim().split('\n')).toHaveLength(2);
    execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: join(folder, 'again'), stdio: 'pipe' });
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
    const container = await start({ volumes });
    const token = readFileSync(join(data, 'administrator-token'), 'utf8').trim();
    expect(container.log()).not.toContain(token);
    // Like the image's health check and a user: with the image's own environment.
    expect(container.exec(...image.health)).toMatch(/^status\s+healthy$/m);
    const inside = (...args: string[]) => container.exec(image.command, '--server', server().url, ...args);
    expect(inside('status')).toMatch(/^memory\.locked\s+true$/m);
    expect(inside('key', 'list')).not.toContain('error');

    endpoint = await createXksEndpoint({ server: server(), api: openConsoleApi(server(), token) }, 'cloud');
    const answer = await endpoint.encrypt(Buffer.from('a first day'));
    expect(answer.status).toBe(200);
    sealed = answer.body;
    expect(await container.stop('TERM')).toBe(0);
    expect(container.log()).toContain('"msg":"stopped"');
    expect(stateOfRoot()).toEqual(before);
  });

  test('continues with the same volume, and keeps its keys', async () => {
    const volumes = [
      { from: data, to: image.data },
      { from: join(folder, 'etc'), to: image.configuration, readOnly: true },
    ] as const;
    const container = await start({ volumes });
    const answer = await endpoint.at(server()).decrypt(sealed);
    expect(Buffer.from(String(answer.body.plaintext), 'base64').toString()).toBe('a first day');
    expect(await container.stop('TERM')).toBe(0);
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
    const container = await start({
      volumes: [
        { from: makeVolume('claim', 0, 0o2775), to: image.data },
        { from: config, to: image.configuration, readOnly: true },
        { from: secrets, to: '/run/secrets/dke', readOnly: true },
      ],
    });
    expect(container.exec(...image.health)).toMatch(/^status\s+healthy$/m);
    expect(await container.stop('TERM')).toBe(0);
  });

  test('serves two pods as the manifests say, and each command of the page works in them as printed', async () => {
    const { pod, toml } = readManifests();
    const postgresql = await startPostgres();
    stopped.push(() => postgresql.remove());
    postgresql.createDatabase('dke');
    const sockets = dirname(postgresql.socket);
    chmodSync(sockets, 0o755);
    const authority = makeAuthority(folder, 'kubernetes authority');
    const { certificate, key } = authority.issue({
      commonName: 'dke.example.com',
      names: ['DNS:dke.example.com'],
      usage: 'serverAuth',
    });
    const place = makeVolume('kubernetes', 0, 0o755);
    const aliases = pod.hostAliases.map(({ ip, hostnames }) => `${ip} ${hostnames.join(' ')}\n`);
    layCluster(place, {
      'tls.crt': readFileSync(certificate),
      'tls.key': readFileSync(key),
      'ca.crt': authority.pem,
      'postgresql-ca.crt': authority.pem,
      password: 'a socket does not ask for it\n',
      passphrase: 'a passphrase of the root key\n',
      hosts: `127.0.0.1 localhost\n${aliases.join('')}`,
      // The user's PostgreSQL: pods of this host reach it by its socket.
      'configuration/dke.toml': toml
        .replace('host = "postgresql.example.com"', 'host = "/var/run/postgresql"')
        .replace(/^ca = .*dke-postgresql.*$/m, ''),
    });
    const environment = { PATH: `${join(place, 'bin')}:${process.env.PATH}` };
    const typed = (text: string): string =>
      execFileSync('sh', ['-ec', text], { cwd: place, encoding: 'utf8', env: environment });
    const blocks = blocksOf('docs/containers.md').filter(({ heading }) => heading === 'Kubernetes');
    const typeBlock = (index: number): string =>
      (blocks[index]?.commands ?? []).map(({ text }) => typed(text)).join('');

    const claims: Readonly<Record<string, string>> = {
      'dke-0': makeVolume('dke-0', 0, 0o2775),
      'dke-1': makeVolume('dke-1', 0, 0o2775),
    };
    mkdirSync(join(place, 'none'));
    const sourceOf = (name: string, volume: string): string => {
      if (volume === 'data') return claims[name] ?? '';
      const secret = pod.volumes.find((each) => each.name === volume)?.secret?.secretName;
      const path = secret === undefined ? join(place, volume) : join(place, 'secrets', secret);
      // The secret of the root key is optional: its folder is empty then.
      return existsSync(path) ? path : join(place, 'none');
    };
    const optionsOf = (name: string, { args, env = [], volumeMounts }: PodContainer): ContainerOptions => ({
      hostname: name,
      volumes: [
        ...volumeMounts.map(({ name: volume, mountPath: to, readOnly }): Volume => {
          const from = sourceOf(name, volume);
          return { from, to, ...(readOnly === true ? { readOnly } : {}) };
        }),
        { from: join(place, 'hosts'), to: '/etc/hosts', readOnly: true },
        { from: sockets, to: '/var/run/postgresql' },
      ],
      environment: Object.fromEntries(env.map((each) => [each.name, each.value])),
      ...(args === undefined ? {} : { command: args }),
    });
    const initialize = async (name: string) => {
      const container = startContainer(bundle, optionsOf(name, pod.initContainers[0]));
      return { code: await container.ended(), log: container.log() };
    };
    const run = async (name: string): Promise<Container> => {
      const container = await start(optionsOf(name, pod.containers[0]));
      layPod(place, name, container.execWords);
      return container;
    };

    expect(blocks).toHaveLength(3);
    typeBlock(0);
    expect(await initialize('dke-0')).toMatchObject({ code: 0 });
    const first = await run('dke-0');
    expect(typeBlock(1)).toMatch(/^health\.healthy\s+true$/m);
    // Kubernetes starts it again, until the secret is there.
    expect(await initialize('dke-1')).toMatchObject({
      code: 3,
      log: expect.stringContaining('/run/secrets/dke-root/'),
    });
    expect(typeBlock(2)).toMatch(/\bdke-0\b/);
    expect(await initialize('dke-1')).toMatchObject({ code: 0 });
    const second = await run('dke-1');
    const nodes = typed(blocks[2]?.commands.at(-1)?.text ?? '');
    for (const name of ['dke-0', 'dke-1']) expect(nodes).toMatch(new RegExp(`\\b${name}\\b`));
    for (const container of [second, first]) expect(await container.stop('TERM')).toBe(0);
  });

  test('runs as two nodes as compose.yaml says: the second one gets the root key of the first, and both serve', async () => {
    const text = readFileSync(resolve(packaging, 'compose.yaml'), 'utf8');
    const { services } = parse(text, { merge: true }) as { readonly services: Readonly<Record<string, Service>> };
    interface Service {
      readonly hostname: string;
      readonly volumes: readonly string[];
      readonly secrets: readonly string[];
      readonly healthcheck: { readonly test: readonly string[] };
    }
    const postgresql = await startPostgres();
    stopped.push(() => postgresql.remove());
    postgresql.createDatabase('dke');
    postgresql.run('postgres', "ALTER ROLE dke PASSWORD 'of compose'");
    const sockets = dirname(postgresql.socket);
    chmodSync(sockets, 0o755);
    writeFileSync(join(sockets, 'data/pg_hba.conf'), 'local all all scram-sha-256\n');
    await postgresql.restart();

    // The user's files, instead of compose.yaml's own folders.
    const place = makeVolume('compose', 0, 0o755);
    cpSync(resolve(packaging, 'compose.toml'), join(place, 'compose.toml'));
    mkdirSync(join(place, 'secrets'));
    const authority = makeAuthority(folder, 'compose authority');
    const { certificate, key } = authority.issue({
      commonName: 'localhost',
      names: ['DNS:localhost'],
      usage: 'serverAuth',
    });
    const secrets = {
      'tls.crt': readFileSync(certificate),
      // Networks of the callers, in addition to those in compose.yaml.
      'authority.crt': authority.pem,
      'tls.key': readFileSync(key),
      'postgresql-password': 'of compose\n',
      'root-backup-passphrase': 'a passphrase of the root key\n',
    };
    for (const [name, content] of Object.entries(secrets)) {
      writeFileSync(join(place, 'secrets', name), content);
      chownSync(join(place, 'secrets', name), 0, image.user);
      chmodSync(join(place, 'secrets', name), 0o440);
    }
    const folders: Record<string, string> = {
      'postgresql-socket': sockets,
      one: makeVolume('one', image.user, 0o700),
      two: makeVolume('two', image.user, 0o700),
    };
    const optionsOf = (name: string, ...more: readonly Volume[]): ContainerOptions => {
      const service = services[name] as Service;
      const volumes = service.volumes.map((line): Volume => {
        const [from = '', to = '', mode] = line.split(':');
        return { from: folders[from] ?? join(place, from), to, ...(mode === 'ro' ? { readOnly: true } : {}) };
      });
      const mounted = [...service.secrets, 'authority.crt'].map(
        (each): Volume => ({ from: join(place, 'secrets', each), to: `/run/secrets/${each}`, readOnly: true }),
      );
      return { hostname: service.hostname, volumes: [...volumes, ...mounted, ...more] };
    };
    const config = ['--config', '/etc/dke/dke.toml'];
    const restore = async (...more: string[]) => {
      const backup = { from: folders.one as string, to: '/one', readOnly: true } as const;
      const passphrase = ['--passphrase-file', '/run/secrets/root-backup-passphrase'];
      const command = ['root', 'restore', '/one/root-backup.key', ...config, ...passphrase, ...more];
      const container = startContainer(bundle, { ...optionsOf('two', backup), command });
      return { code: await container.ended(), log: container.log() };
    };

    // Nothing is to be done for the first node; the second one waits for the backup.
    expect(await restore('--if-missing')).toMatchObject({ code: 0, log: expect.stringMatching(/^restored\s+false$/m) });
    const one = await start(optionsOf('one'));
    expect(await restore('--if-missing')).toMatchObject({ code: 6, log: expect.stringContaining('ENOENT') });
    const withoutKey = startContainer(bundle, optionsOf('two'));
    expect(await withoutKey.ended(), withoutKey.log()).toBe(6);
    const passphrase = ['--new-passphrase-file', '/run/secrets/root-backup-passphrase'];
    one.exec(image.command, 'root', 'backup', ...config, '--out', '/var/lib/dke/root-backup.key', ...passphrase);
    expect(await restore()).toMatchObject({ code: 0 });
    const two = await start(optionsOf('two'));

    for (const node of [one, two])
      expect(node.exec(...(services.one as Service).healthcheck.test.slice(1))).toMatch(/^status\s+healthy$/m);
    const token = readFileSync(join(folders.one as string, 'administrator-token'));
    writeFileSync(join(folders.two as string, 'administrator-token'), token, { mode: 0o600 });
    chownSync(join(folders.two as string, 'administrator-token'), image.user, image.user);
    const ask = (node: Container, ...args: string[]) =>
      node.exec(image.command, '--ca-file', '/run/secrets/authority.crt', ...args);
    expect(ask(one, 'vault', 'create', 'shared')).toContain('shared');
    expect(ask(two, 'vault', 'list')).toContain('shared');
    const nodes = ask(two, 'node', 'list');
    for (const name of ['one', 'two']) expect(nodes).toMatch(new RegExp(`\\b${name}\\b`));
    for (const node of [two, one]) expect(await node.stop('TERM')).toBe(0);
  });
});
