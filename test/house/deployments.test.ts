// The settings of a container of the service: in its image, in compose.yaml and in the manifests
// for Kubernetes. They agree with each other and with what the service itself accepts as its
// configuration, and the manifests with the published schemas. npm has no current schema of compose
// files. test/scenario/container.test.ts runs the image, and what compose.yaml says.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { validate as statefulSet } from 'kubernetes-models/_schemas/IoK8sApiAppsV1StatefulSet';
import { validate as configMap } from 'kubernetes-models/_schemas/IoK8sApiCoreV1ConfigMap';
import { validate as service } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Service';
import { validate as networkPolicy } from 'kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy';
import { validate as podDisruptionBudget } from 'kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { image, imageConfiguration, systemLibraries } from '../../provider/packaging/image.ts';
import { packages } from '../../provider/packaging/packages.ts';
import { type Config, parseConfig } from '../../server/app/config/config.ts';
import { createHealthApp } from '../../server/fronts/health.ts';
import { librariesOf, shippedNode } from '../support/elf.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const { version } = JSON.parse(read('package.json')) as { readonly version: string };
const reference = `${image.name}:${version}`;
const healthPaths = createHealthApp({
  operations: { health: () => Promise.reject(new Error('not asked')) },
}).routes.map(({ path }) => `/health${path}`.replace(/\/$/, ''));

/** In the container. */
const configurationPath = join(image.configuration, 'dke.toml');
const parseIn = (toml: string): Config => parseConfig(toml, configurationPath, image.configuration);
const secretsOf = ({ tls, postgresql }: Config): readonly string[] =>
  [tls.main?.certificate, tls.main?.key, postgresql?.passwordFile, postgresql?.ca].filter((path) => path !== undefined);

describe('the image', () => {
  const spec = packages.find(({ kinds }) => kinds.includes('oci'));
  if (spec === undefined) throw new Error('no image is made');
  const { config, ...rest } = imageConfiguration({ version, date: new Date(0) }, spec, 'amd64', 'sha256:00');

  test('is told what its own dke.toml says', () => {
    const texts = spec.texts((path) => read(path));
    const own = parseIn(texts[configurationPath] ?? '');
    expect(own.server).toMatchObject({ host: '0.0.0.0', port: image.port });
    expect(own.dataDirectory).toBe(join(image.data, 'data'));
    expect(own.log.destination).toBe('stderr');
    expect(config.ExposedPorts).toEqual({ [`${own.server.port}/tcp`]: {} });
    const environment = Object.fromEntries(config.Env.map((line) => line.split('=') as [string, string]));
    expect(environment).toMatchObject({
      DKE_SERVER: `https://localhost:${own.server.port}`,
      DKE_CA_FILE: join(own.dataDirectory, 'tls.crt'),
      TMPDIR: image.data,
    });
    expect(config.Cmd).toEqual(['server', '--config', configurationPath, '--token-out', environment.DKE_TOKEN_FILE]);
    expect(Object.keys(config.Volumes)).toEqual([image.data]);
    expect(config.Healthcheck.Test).toEqual([
      'CMD',
      ...config.Entrypoint,
      'server',
      'health',
      ...config.Cmd.slice(1, 3),
    ]);
    expect(Object.keys(texts)).toContain(config.Labels['org.opencontainers.image.documentation']);
    expect(config.User).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(rest).toMatchObject({ os: 'linux', rootfs: { diff_ids: ['sha256:00'] } });
  });

  test('has each library that Node and the addon are linked with', () => {
    const inside: readonly string[] = systemLibraries.flatMap(({ files }) => files);
    for (const path of [shippedNode, join(root, 'build/Release/dke_core.node')])
      expect(librariesOf(path).filter((name) => !inside.includes(name) && !/^ld-linux/.test(name))).toEqual([]);
  });
});

describe('compose.yaml', () => {
  interface ComposeService {
    readonly image: string;
    readonly user: string;
    readonly volumes: readonly string[];
    readonly secrets: readonly string[];
    readonly ports: readonly string[];
    readonly healthcheck: { readonly test: readonly string[] };
    readonly stop_grace_period: string;
    readonly [field: string]: unknown;
  }
  const text = read('server/packaging/compose.yaml');
  const compose = parse(text, { merge: true }) as {
    readonly services: Readonly<Record<string, ComposeService>>;
    readonly volumes: object;
    readonly secrets: object;
  };
  const config = parseIn(read('server/packaging/compose.toml'));
  const nodes = ['one', 'two'].map((name) => [name, compose.services[name] as ComposeService] as const);

  test.each(nodes)('node %s: the image as it is made, without rights, with its own volume', (name, node) => {
    expect(node.image).toBe(reference);
    expect(node.user).toBe(`${image.user}:${image.user}`);
    expect(node).toMatchObject({ read_only: true, cap_drop: ['ALL'], hostname: name });
    expect(node.healthcheck.test).toEqual(['CMD', ...image.health]);
    expect(node.volumes).toEqual([
      `./compose.toml:${configurationPath}:ro`,
      `${name}:${image.data}`,
      `postgresql-socket:${config.postgresql?.host}:ro`,
    ]);
    for (const path of secretsOf(config)) expect(node.secrets.map((each) => `/run/secrets/${each}`)).toContain(path);
    expect(node.ports.map((each) => each.split(':')[1])).toEqual([String(config.server.port)]);
    expect(Number.parseInt(node.stop_grace_period, 10)).toBeGreaterThan(
      config.server.drainNoticeSeconds + config.server.drainSeconds,
    );
  });

  test('dke in a container asks this node, by a name of its certificate', () => {
    for (const [, node] of nodes) {
      const { DKE_SERVER = '', DKE_CA_FILE } = node.environment as Readonly<Record<string, string>>;
      const { hostname, port } = new URL(DKE_SERVER);
      expect([hostname, Number(port)]).toEqual([config.server.publicNames[0], config.server.port]);
      expect(node.extra_hosts).toEqual([`${hostname}:127.0.0.1`]);
      expect(DKE_CA_FILE).toBe(config.tls.main?.certificate);
    }
  });

  test('everything that is named is declared, and no port is taken twice', () => {
    const services = Object.values(compose.services);
    const secrets = new Set(services.flatMap((each) => each.secrets));
    expect([...secrets].sort()).toEqual(Object.keys(compose.secrets).sort());
    const volumes = services.flatMap((each) => each.volumes.map((line) => line.split(':')[0] as string));
    expect([...new Set(volumes.filter((each) => !each.startsWith('.')))].sort()).toEqual(
      Object.keys(compose.volumes).sort(),
    );
    expect(new Set(nodes.map(([, node]) => node.ports[0]?.split(':')[0])).size).toBe(2);
  });
});

describe('the manifests for Kubernetes', () => {
  interface Mount {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }
  interface Probe {
    readonly httpGet: { readonly path: string; readonly port: string; readonly scheme: string };
  }
  interface PodContainer {
    readonly image: string;
    readonly args?: readonly string[];
    readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
    readonly env?: readonly { readonly name: string; readonly value: string }[];
    readonly securityContext: object;
    readonly resources: { readonly requests: object; readonly limits: object };
    readonly volumeMounts: readonly Mount[];
    readonly [probe: `${string}Probe`]: Probe | undefined;
  }
  interface Pod {
    readonly initContainers: readonly PodContainer[];
    readonly containers: readonly PodContainer[];
    readonly volumes: readonly { readonly name: string; readonly secret?: object }[];
    readonly terminationGracePeriodSeconds: number;
    readonly [field: string]: unknown;
  }
  interface Manifest {
    readonly apiVersion: string;
    readonly kind: string;
    readonly metadata: { readonly name: string };
    readonly data: Readonly<Record<string, string>>;
    readonly spec: {
      readonly serviceName: string;
      readonly selector: { readonly matchLabels: object };
      readonly podSelector: { readonly matchLabels: object };
      readonly ports: readonly { readonly targetPort: string }[];
      readonly template: { readonly metadata: { readonly labels: object }; readonly spec: Pod };
      readonly volumeClaimTemplates: readonly { readonly metadata: { readonly name: string } }[];
      readonly ingress: readonly { readonly ports: readonly { readonly port: string }[] }[];
      readonly egress: readonly { readonly ports: readonly { readonly port: number }[] }[];
    };
  }
  const folder = 'server/packaging/kubernetes';
  // kubectl reads YAML 1.1, in which a number that begins with 0 is octal.
  const documents = readdirSync(join(root, folder)).flatMap((name) =>
    parseAllDocuments(read(join(folder, name)), { version: '1.1' }).map((each) => each.toJS() as Manifest),
  );
  const ofKind = (kind: string): Manifest => documents.find((each) => each.kind === kind) as Manifest;
  const set = ofKind('StatefulSet');
  const pod = set.spec.template.spec;
  const config = parseIn(ofKind('ConfigMap').data['dke.toml'] ?? '');
  const all = [...pod.initContainers, ...pod.containers];

  const validators: Readonly<Record<string, ((data: unknown) => boolean) & { readonly errors?: unknown }>> = {
    'apps/v1 StatefulSet': statefulSet,
    'networking.k8s.io/v1 NetworkPolicy': networkPolicy,
    'policy/v1 PodDisruptionBudget': podDisruptionBudget,
    'v1 ConfigMap': configMap,
    'v1 Service': service,
  };
  /**
   * Removes from `unread` the fields that the validators read: these are all that Kubernetes has.
   * They ignore others.
   */
  const watch = (value: unknown, path: string, unread: Set<string>): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    const parts = Object.entries(value).map(([name, part]) => {
      unread.add(`${path}/${name}`);
      return [name, watch(part, `${path}/${name}`, unread)] as const;
    });
    return new Proxy(Array.isArray(value) ? parts.map(([, part]) => part) : Object.fromEntries(parts), {
      get: (target, name, receiver) => {
        unread.delete(`${path}/${String(name)}`);
        return Reflect.get(target, name, receiver);
      },
    });
  };
  const faultsOf = (document: Manifest): readonly unknown[] => {
    const validate = validators[`${document.apiVersion} ${document.kind}`];
    if (validate === undefined) return [`no schema for ${document.kind}`];
    const unread = new Set<string>();
    return validate(watch(document, '', unread)) ? [...unread] : [validate.errors];
  };

  test('are valid by the schemas of Kubernetes, and have no field that these do not know', () => {
    expect(documents.map(({ kind }) => kind).sort()).toEqual([
      ...['ConfigMap', 'NetworkPolicy', 'PodDisruptionBudget', 'Service', 'Service', 'StatefulSet'],
    ]);
    for (const document of documents) expect(faultsOf(document), document.kind).toEqual([]);
    const wrong = structuredClone(set);
    Object.assign(wrong.spec.template.spec.containers[0] ?? {}, {
      securityContexts: {},
      ports: [{ containerPort: 'a' }],
    });
    expect(faultsOf(wrong)).toEqual([
      [expect.objectContaining({ instancePath: expect.stringMatching(/containerPort$/) })],
    ]);
    Object.assign(wrong.spec.template.spec.containers[0] ?? {}, { ports: [] });
    expect(faultsOf(wrong)).toEqual(['/spec/template/spec/containers/0/securityContexts']);
  });

  test('run the image as it is made, without rights and with limits', () => {
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: image.user,
        runAsGroup: image.user,
        fsGroup: image.user,
        // Always would open the root key file to the group, at each start.
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'RuntimeDefault' },
      },
    });
    for (const each of all) {
      expect(each.image).toBe(reference);
      expect(each.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(Object.keys(each.resources.requests)).toEqual(['cpu', 'memory']);
      expect(Object.keys(each.resources.limits)).toEqual(['memory']);
    }
  });

  test('ask addresses that the service has, by the name of its port', () => {
    const [node] = pod.containers;
    expect(node?.ports).toEqual([{ name: 'https', containerPort: config.server.port }]);
    const probe = (path: string) => ({ httpGet: { path, port: 'https', scheme: 'HTTPS' } });
    expect(healthPaths).toEqual(['/health', '/health/live']);
    // A sealed or unhealthy node is out of service; a restart would not help it.
    expect(node).toMatchObject({
      livenessProbe: probe('/health/live'),
      readinessProbe: probe('/health'),
      startupProbe: probe('/health/live'),
    });
    for (const each of documents.filter(({ kind }) => kind === 'Service'))
      expect(each.spec.ports.map(({ targetPort }) => targetPort)).toEqual(['https']);
    const policy = ofKind('NetworkPolicy').spec;
    expect(policy.ingress.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual(['https']);
    expect(policy.egress.flatMap(({ ports }) => ports.map(({ port }) => port))).toContain(config.postgresql?.port);
  });

  test('dke in a pod asks this node, by a name of its certificate', () => {
    const [node] = pod.containers;
    const environment = new Map((node?.env ?? []).map(({ name, value }) => [name, value]));
    const { hostname, port } = new URL(environment.get('DKE_SERVER') ?? '');
    expect([hostname, Number(port)]).toEqual([config.server.publicNames[0], config.server.port]);
    expect(pod.hostAliases).toEqual([{ ip: '127.0.0.1', hostnames: [hostname] }]);
    expect(node?.volumeMounts.map(({ mountPath }) => mountPath)).toContain(
      dirname(environment.get('DKE_CA_FILE') ?? ''),
    );
  });

  test('name one set of pods, one configuration, and give each node the time to end its requests', () => {
    const { labels } = set.spec.template.metadata;
    for (const selector of [
      set.spec.selector.matchLabels,
      ofKind('PodDisruptionBudget').spec.selector.matchLabels,
      ofKind('NetworkPolicy').spec.podSelector.matchLabels,
      ...documents.filter(({ kind }) => kind === 'Service').map((each) => each.spec.selector),
    ])
      expect(selector).toEqual(labels);
    expect(documents.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toContain(
      `Service ${set.spec.serviceName}`,
    );
    const { drainNoticeSeconds, drainSeconds } = config.server;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(drainNoticeSeconds + drainSeconds);
  });

  test('mount what dke.toml names: the data that is the pod’s own, and secrets as files', () => {
    const volumes = new Set([
      ...pod.volumes.map(({ name }) => name),
      ...set.spec.volumeClaimTemplates.map(({ metadata }) => metadata.name),
    ]);
    for (const { volumeMounts } of all) {
      for (const { name } of volumeMounts) expect(volumes).toContain(name);
      const placeOf = (name: string) => volumeMounts.find((each) => each.name === name)?.mountPath;
      expect(placeOf('data')).toBe(image.data);
      expect(placeOf('configuration')).toBe(image.configuration);
      const readOnly = volumeMounts.filter((each) => each.readOnly === true).map(({ mountPath }) => mountPath);
      for (const path of secretsOf(config))
        expect(
          readOnly.some((mount) => path.startsWith(`${mount}/`)),
          path,
        ).toBe(true);
    }
    expect(config.dataDirectory.startsWith(`${image.data}/`)).toBe(true);
    const [join = { args: [], volumeMounts: [] }] = pod.initContainers;
    for (const path of join.args?.filter((each) => each.startsWith('/run/secrets/')) ?? [])
      expect(
        join.volumeMounts.some(({ mountPath }) => path.startsWith(`${mountPath}/`)),
        path,
      ).toBe(true);
    expect(join.args).toContain(configurationPath);
    // The backup of the root key is for a node that joins: the service itself never sees it.
    expect(pod.containers[0]?.volumeMounts.map(({ name }) => name)).not.toContain('root');
  });
});
