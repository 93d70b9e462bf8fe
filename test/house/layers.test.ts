// Who may import whom. The table below is the house's plan; a file that breaks it fails here by
// name. What a layer may not say (words of another world) is checked here too.
import { describe, expect, test } from 'vitest';
import { files, findCircle, importsOf, includesOf, read, withoutComments } from '../support/sources.ts';

interface Layer {
  readonly name: string;
  readonly path: RegExp;
  /** Layers it may import, next to itself. */
  readonly may: readonly string[];
  /** Layers of which it may import types only. */
  readonly types?: readonly string[];
  /** Packages and Node modules it may import; absent: any. */
  readonly packages?: RegExp;
}

const nothing = /^\b$/;
/** What implements ports; none imports another. */
const adapters: readonly Layer[] = [
  { name: 'store', path: /^server\/adapters\/store\//, may: ['base', 'durable-files', 'domain', 'ports'] },
  {
    name: 'crypto',
    path: /^server\/adapters\/crypto\//,
    may: ['base', 'durable-files', 'domain', 'ports', 'addon', 'labels'],
  },
  // The addon reads and writes the root file itself: its keys do not pass through here. A wrapped
  // root file contains nothing unencrypted. A hardware module's secret passes as bytes through the
  // child that calls the module.
  {
    name: 'roots',
    path: /^server\/adapters\/roots\//,
    may: ['base', 'passphrase', 'durable-files', 'domain', 'ports', 'addon', 'labels'],
  },
  // Snapshots are sealed and opened by references into the addon: keys do not pass through here.
  {
    name: 'archives',
    path: /^server\/adapters\/archives\//,
    may: ['base', 'durable-files', 'domain', 'ports', 'addon', 'labels'],
    packages: /^node:/,
  },
  { name: 'sinks', path: /^server\/adapters\/sinks\//, may: ['base', 'durable-files', 'domain', 'ports'] },
  { name: 'identity', path: /^server\/adapters\/identity\//, may: ['base', 'domain', 'ports'] },
  // OpenTelemetry's library is used here only, and loaded when it is configured.
  { name: 'telemetry', path: /^server\/adapters\/telemetry\//, may: ['base', 'domain', 'ports'] },
  { name: 'diagnosis', path: /^server\/adapters\/diagnosis\//, may: ['base', 'domain', 'ports'] },
  // Texts as data: they are read from files next to the code.
  {
    name: 'runbooks',
    path: /^server\/adapters\/runbooks\//,
    may: ['base', 'domain'],
    packages: /^(node:(fs|path)|smol-toml|zod)$/,
  },
  {
    name: 'packages',
    path: /^server\/adapters\/packages\//,
    may: ['base', 'bundle-targets', 'ports'],
    packages: /^node:/,
  },
  { name: 'cloud', path: /^server\/adapters\/cloud\//, may: ['base', 'domain', 'ports'] },
  // What the operating system says of this host and this process.
  { name: 'host', path: /^server\/adapters\/host\//, may: ['base', 'domain', 'ports'], packages: /^node:/ },
];
// A front is a file or a folder of server/fronts; each is a layer of its own, so that none imports
// another.
const fronts = [
  ...new Set(files(['server'], '.ts').flatMap((path) => /^server\/fronts\/([a-z-]+)/.exec(path)?.[1] ?? [])),
].filter((name) => name !== 'listener' && name !== 'shared');

const layers: readonly Layer[] = [
  // Data, for every part that derives, authenticates or seals.
  { name: 'labels', path: /^addon\/labels\.ts$/, may: [], packages: nothing },
  { name: 'addon', path: /^addon\/(?!labels\.ts$)/, may: ['labels'], packages: /^node:/ },
  // The generator writes the module's tables with the signatures that the agent's codec derives.
  { name: 'generator', path: /^provider\/schema\/generate[./]/, may: ['schema', 'agent'] },
  { name: 'schema', path: /^provider\/schema\//, may: [], packages: nothing },
  { name: 'agent', path: /^provider\/agent\//, may: ['schema', 'base', 'contract', 'log-file', 'addon'] },
  // Builds packages of the built project.
  { name: 'packaging', path: /^provider\/packaging\//, may: ['install'], packages: /^node:/ },
  // Runs once on a database host to install the agent and its library.
  { name: 'install', path: /^provider\/install\//, may: ['base', 'agent'], types: ['contract'], packages: /^node:/ },
  // A rule of commands and pages alike.
  { name: 'passphrase', path: /^server\/base\/passphrase\.ts$/, may: [], packages: nothing },
  // The console offers commands and says what brings a key back, too.
  { name: 'command-line', path: /^server\/base\/(command-line|csv|way-back)\.ts$/, may: [], packages: nothing },
  {
    name: 'durable-files',
    path: /^server\/base\/(durable|disk)-files\.ts$/,
    may: [],
    types: ['ports'],
    packages: /^node:(fs|path)/,
  },
  // The log file of the service and of the agent, independent of its content.
  { name: 'log-file', path: /^server\/base\/log-file\.ts$/, may: [], packages: /^node:/ },
  {
    name: 'base',
    path: /^server\/base\/(?!durable-files|disk-files|log-file|passphrase|command-line|csv|way-back)/,
    may: ['labels'],
    packages: /^node:(buffer|crypto|dns|net|util)$/,
  },
  // The command and browsers make bundles of it alike.
  { name: 'bundle-targets', path: /^server\/domain\/bundle-targets\.ts$/, may: [], packages: nothing },
  { name: 'domain', path: /^server\/domain\/(?!bundle-targets)/, may: ['base'], packages: nothing },
  {
    name: 'contract',
    path: /^server\/contract\//,
    may: ['base', 'domain', 'labels'],
    packages: /^(zod|@hono\/zod-openapi)$/,
  },
  // The opaque number of a key is the one word that the server's inside shares with the addon.
  { name: 'ports', path: /^server\/ports\//, may: ['base', 'domain'], types: ['addon'], packages: nothing },
  {
    name: 'operations',
    path: /^server\/operations\//,
    may: ['base', 'domain', 'ports', 'labels'],
    types: ['addon'],
    packages: /^node:(async_hooks|buffer|crypto|util)$/,
  },
  ...adapters,
  // Sockets, TLS and HTTP versions, independent of what is served.
  { name: 'listener', path: /^server\/fronts\/listener\//, may: ['base'], packages: /^node:/ },
  {
    name: 'shared',
    path: /^server\/fronts\/shared\//,
    may: ['base', 'contract', 'operations'],
    types: ['domain', 'ports'],
  },
  ...fronts.map(
    (name): Layer => ({
      name: `fronts/${name}`,
      path: new RegExp(`^server/fronts/${name}[./]`),
      may: ['base', 'contract', 'shared', 'operations'],
      types: ['domain', 'ports'],
    }),
  ),
  // Runs in the command and in browsers alike.
  { name: 'bundle', path: /^server\/clients\/bundle\//, may: ['bundle-targets'], packages: nothing },
  // A separate package, which has only the document of the API.
  { name: 'client-generator', path: /^server\/clients\/typescript\/generate\.ts$/, may: ['contract'] },
  { name: 'api-client', path: /^server\/clients\/typescript\//, may: [], packages: /^node:/ },
  // Another party, played by us: it meets the service over HTTPS only.
  { name: 'cloud-simulator', path: /^server\/clients\/cloud-simulator\//, may: ['base', 'addon'], packages: /^node:/ },
  // The pages are another program: of the server they import the contract, whose schemas forms ask,
  // and types.
  {
    name: 'web',
    path: /^server\/clients\/web\//,
    may: ['bundle', 'bundle-targets', 'passphrase', 'command-line', 'contract'],
    types: ['base'],
  },
  { name: 'config', path: /^server\/app\/config\//, may: ['base'] },
  {
    name: 'app',
    path: /^server\/app\/(?!config\/|process\.ts)/,
    may: [
      'base',
      'durable-files',
      'log-file',
      'domain',
      'ports',
      'operations',
      ...adapters.map(({ name }) => name),
      'contract',
      'shared',
      'config',
      'addon',
      ...fronts.map((name) => `fronts/${name}`),
    ],
    types: ['listener'],
  },
  {
    name: 'process',
    path: /^server\/app\/process\.ts$/,
    may: ['base', 'durable-files', 'app', 'config', 'contract', 'listener'],
    types: ['ports'],
  },
  {
    name: 'cli',
    path: /^server\/cli\//,
    // Recovery keys are opened here, in the addon, and copies of snapshots are verified without a
    // service.
    may: [
      'base',
      'durable-files',
      'passphrase',
      'app',
      'api-client',
      'bundle',
      'bundle-targets',
      'config',
      'contract',
      'process',
      'cloud-simulator',
      'archives',
      'addon',
    ],
  },
];

const layerOf = (path: string): Layer | undefined => layers.find((layer) => layer.path.test(path));
const sources = files(['addon', 'provider', 'server'], '.ts', '.tsx');
const own = new Map(sources.map((path) => [path, importsOf(path).filter(({ ours }) => ours)]));

describe('who imports whom', () => {
  test('every source file belongs to a layer', () => {
    expect(sources.filter((path) => layerOf(path) === undefined)).toEqual([]);
  });

  test.each(layers)('$name imports what is below it', ({ name, path: pattern, may, types = [] }) => {
    const wrong = sources
      .filter((path) => pattern.test(path) && layerOf(path)?.name === name)
      .flatMap((path) =>
        (own.get(path) ?? [])
          .filter(({ target, typeOnly }) => {
            const layer = layerOf(target)?.name ?? 'nowhere';
            // A part of base, which the console has, too.
            if (layer === 'command-line' && may.includes('base')) return false;
            return layer !== name && !may.includes(layer) && !(typeOnly && types.includes(layer));
          })
          .map(({ target, typeOnly }) => `${path} imports ${typeOnly ? 'types of ' : ''}${target}`),
      );
    expect(wrong).toEqual([]);
  });

  test.each(layers.filter(({ packages }) => packages !== undefined))('$name imports few packages', (layer) => {
    const wrong = sources
      .filter((path) => layerOf(path) === layer)
      .flatMap((path) =>
        importsOf(path)
          .filter(({ ours, target }) => !ours && !layer.packages?.test(target))
          .map(({ target }) => `${path} imports ${target}`),
      );
    expect(wrong).toEqual([]);
  });

  test('the agent knows the server by its contract with it, and by the words of its errors', () => {
    const wrong = sources
      .filter((path) => layerOf(path)?.name === 'agent')
      .flatMap((path) => (own.get(path) ?? []).map(({ target }) => target))
      .filter((target) => /^server\/(fronts|contract)\//.test(target) && target !== 'server/contract/tde.ts');
    expect(wrong).toEqual([]);
  });

  test('no import goes in a circle, of types neither', () => {
    const edges = new Map([...own].map(([path, imports]) => [path, imports.map(({ target }) => target)]));
    expect(findCircle(edges)).toEqual([]);
  });

  test('the folders of operations import each other in no circle, of types neither', () => {
    const folderOf = (path: string) => /^server\/operations\/([a-z-]+(?:\.ts)?)/.exec(path)?.[1];
    const edges = new Map<string, string[]>();
    for (const [path, imports] of own) {
      const folder = folderOf(path);
      if (folder === undefined) continue;
      const others = imports.flatMap(({ target }) => folderOf(target) ?? []).filter((other) => other !== folder);
      edges.set(folder, [...(edges.get(folder) ?? []), ...others]);
    }
    expect(edges.size).toBeGreaterThan(15);
    expect(findCircle(edges)).toEqual([]);
  });

  test('only the store speaks to a database, only the fronts serve HTTP', () => {
    const owners: readonly (readonly [RegExp, readonly string[]])[] = [
      [/^(kysely|pg)(\/|$)/, ['store']],
      // The installer's lock is one of the system, which SQLite takes.
      [/^node:sqlite$/, ['store', 'install']],
      [
        /^(hono|@hono\/node-server)(\/|$)/,
        ['shared', 'app', 'process', 'cli', ...fronts.map((name) => `fronts/${name}`)],
      ],
      [/^node:worker_threads$/, ['agent', 'app', 'crypto', 'store']],
    ];
    const wrong = sources.flatMap((path) =>
      importsOf(path).flatMap(({ target, ours }) => {
        const owner = owners.find(([pattern]) => !ours && pattern.test(target));
        return owner === undefined || owner[1].includes(layerOf(path)?.name ?? '') ? [] : [`${path} imports ${target}`];
      }),
    );
    expect(wrong).toEqual([]);
  });
});

describe('the words of each world', () => {
  const saying = (paths: readonly string[], word: RegExp, code = false): string[] =>
    paths.flatMap((path) => {
      const text = code ? withoutComments(read(path)) : read(path);
      return text.split('\n').flatMap((line, at) => (word.test(line) ? [`${path}:${at + 1}: ${line.trim()}`] : []));
    });
  const server = sources.filter((path) => path.startsWith('server/'));

  test('the server says no Cryptoki', () => {
    // Except the process that calls a hardware module, a vendor's PKCS#11 library.
    const others = server.filter((path) => path !== 'server/adapters/roots/hardware-child.ts');
    expect(saying(others, /\bCK[A-Z]?_/)).toEqual([]);
  });

  test('the domain is pure: no waiting, no SQL, no HTTP, no clock, no chance', () => {
    const domain = server.filter((path) => path.startsWith('server/domain/'));
    const words =
      /\b(await|async|Promise|SELECT|INSERT|Response|fetch|Date\.now|new Date\(\)|Math\.random|process\.\w+)\b/;
    expect(saying(domain, words, true)).toEqual([]);
  });

  test('the values of keys pass only through these files', () => {
    const declared = ['addon/core.ts', 'server/adapters/crypto/open-core.ts', 'server/ports/crypto-core.ts'];
    const naming = (word: RegExp, folders: readonly string[]): readonly string[] =>
      files(folders, '.ts')
        .filter((path) => !declared.includes(path) && word.test(withoutComments(read(path))))
        .sort();
    expect(naming(/\bexport(?:Secret|PrivateKey)\b/, ['server', 'provider'])).toEqual([
      // C_GetAttributeValue of keys that are extractable and not sensitive.
      'provider/agent/functions/object.ts',
      // CKM_HKDF_DATA, which derives data.
      'provider/agent/operations/derivation.ts',
      'provider/agent/operations/read-value.ts',
      // A module's secret in the child that calls the module.
      'server/adapters/roots/hardware-child.ts',
      'server/operations/tde/read-token-object.ts',
    ]);
    expect(naming(/\bimport(?:Secret|PrivateKey)\b/, ['server/operations/tde', 'server/fronts'])).toEqual([]);
  });

  test('an open key of the token is reached only through the pipeline that checks every use', () => {
    const naming = files(['server'], '.ts').filter((path) => /\bwithObjectKeys\b/.test(withoutComments(read(path))));
    expect(naming.sort()).toEqual([
      'server/operations/data-path/create-working-memory.ts',
      'server/operations/data-path/object-cache.ts',
      'server/operations/tde/token-key-pipeline.ts',
      'server/ports/working-memory.ts',
    ]);
  });

  test('a command loads the whole service only when it runs, because loading takes a second', () => {
    const early = /^(?:import (?!type\b)|\} from ).*'(?:\.\.\/)+app\/(?:process|host\/offline)\.ts'/;
    expect(saying(files(['server/cli'], '.ts'), early)).toEqual([]);
  });

  test('no code asks Math.random', () => {
    expect(saying(sources, /Math\.random/, true)).toEqual([]);
  });
});

describe('who includes whom in C and C++', () => {
  const native = files(['addon', 'provider'], '.c', '.h', '.cc');
  const includes = new Map(native.map((path) => [path, includesOf(path)]));
  const ownIncludes = (path: string): string[] =>
    (includes.get(path) ?? []).filter(({ ours }) => ours).map(({ target }) => target);
  const base = (path: string): string => path.replace(/^provider\/module\//, '').replace(/\.[ch]$/, '');

  /** What each file of the library may include next to its own header, from the bottom up. */
  const library: Readonly<Record<string, readonly string[]>> = {
    'message/gen/numbers': [],
    'message/gen/interface': [],
    'message/cryptoki': ['message/gen/interface'],
    'message/buffer': [],
    'host/descriptor': ['host/process'],
    'host/process': ['host/descriptor'],
    'host/acting_user': [],
    'host/last_cause': ['message/buffer'],
    'entry/vendor': [],
    'host/secure_config': ['host/descriptor'],
    'host/settings': ['host/acting_user', 'host/descriptor', 'host/secure_config'],
    'message/gen/causes': [],
    'host/log': [
      'host/acting_user',
      'message/cryptoki',
      'host/descriptor',
      'message/gen/causes',
      'host/last_cause',
      'host/process',
    ],
    'host/temporary_folder': ['host/descriptor', 'host/log'],
    'host/launch': ['host/acting_user', 'message/cryptoki', 'host/descriptor', 'host/log', 'host/process'],
    'message/gen/forms': [],
    'message/argument_codec': ['message/buffer', 'message/cryptoki', 'message/gen/forms'],
    'message/mechanism': ['message/argument_codec'],
    'connection/lane': ['message/buffer', 'host/descriptor'],
    'connection/spinning': [],
    'connection/wire': ['message/buffer', 'host/descriptor', 'connection/lane', 'host/process', 'connection/spinning'],
    'connection/leader': ['host/descriptor', 'host/process', 'connection/transport', 'connection/wire'],
    'connection/transport': [
      'message/buffer',
      'host/descriptor',
      'connection/lane',
      'connection/leader',
      'host/process',
      'connection/wire',
    ],
    'connection/resumption': ['message/buffer', 'message/cryptoki', 'host/process'],
    'connection/connect': [
      'host/acting_user',
      'message/argument_codec',
      'host/descriptor',
      'host/settings',
      'connection/lane',
      'host/last_cause',
      'host/launch',
      'host/log',
      'host/process',
      'connection/resumption',
      'host/temporary_folder',
      'connection/transport',
    ],
    'connection/library': [
      'connection/connect',
      'message/cryptoki',
      'host/descriptor',
      'host/last_cause',
      'host/log',
      'host/process',
      'connection/resumption',
      'host/settings',
      'connection/transport',
    ],
    'call/arguments': [
      'message/buffer',
      'message/argument_codec',
      'connection/connect',
      'host/last_cause',
      'connection/library',
      'connection/resumption',
      'connection/transport',
    ],
    'call/delivery': [
      'call/arguments',
      'connection/connect',
      'message/gen/numbers',
      'host/last_cause',
      'connection/library',
      'host/log',
      'host/process',
      'connection/resumption',
      'connection/transport',
    ],
    'call/call': [
      'call/arguments',
      'call/delivery',
      'message/gen/numbers',
      'host/last_cause',
      'host/log',
      'connection/resumption',
      'connection/transport',
    ],
    'call/large_parts': ['connection/connect', 'call/large_data', 'connection/library'],
    'call/large_data': [
      'call/call',
      'connection/connect',
      'message/gen/numbers',
      'connection/library',
      'host/log',
      'call/large_parts',
      'connection/resumption',
    ],
    'entry/gen/entries': ['call/call', 'message/gen/numbers', 'call/large_data', 'connection/library'],
    'entry/gen/tables': ['call/call', 'message/gen/numbers'],
    'message/gen/parameters': ['message/argument_codec'],
    'entry/special_entries': [
      'call/call',
      'message/gen/numbers',
      'host/last_cause',
      'connection/library',
      'connection/resumption',
      'entry/vendor',
    ],
  };

  test('the library is a staircase, and nothing includes its entry', () => {
    const wrong = native
      .filter((path) => path.startsWith('provider/module/'))
      .flatMap((path) =>
        ownIncludes(path)
          .map(base)
          .filter((target) => target !== base(path) && !library[base(path)]?.includes(target))
          .map((target) => `${path} includes ${target}`),
      );
    expect(wrong).toEqual([]);
  });

  test('the library knows libc and nothing else', () => {
    const system = native
      .filter((path) => path.startsWith('provider/module/'))
      .flatMap((path) =>
        (includes.get(path) ?? []).filter(({ ours }) => !ours).map(({ target }) => ({ path, target })),
      );
    const wrong = system.filter(
      ({ target }) => /^(openssl|node|napi|uv|p11-kit)/.test(target) || !target.endsWith('.h'),
    );
    expect(wrong).toEqual([]);
  });

  test('the addon’s core knows no Node and nothing of the binding', () => {
    const wrong = native
      .filter((path) => path.startsWith('addon/core/'))
      .flatMap((path) =>
        (includes.get(path) ?? [])
          .filter(({ ours, target }) =>
            ours ? !target.startsWith('addon/core/') : /^(napi|node_api|js_native_api|node|uv|v8)/.test(target),
          )
          .map(({ target }) => `${path} includes ${target}`),
      );
    expect(wrong).toEqual([]);
  });

  test('a shelf of the core includes only itself and shelves below it', () => {
    const shelves = ['base', 'keys', 'digests', 'public_key', 'ciphers', 'root', 'xks', 'wrapping', 'frames'];
    const shelf = (path: string): string => path.split('/')[2] ?? '';
    const core = native.filter((path) => path.startsWith('addon/core/'));
    expect(core.filter((path) => !shelves.includes(shelf(path)))).toEqual([]);
    const wrong = core.flatMap((path) =>
      ownIncludes(path)
        .filter((target) => shelves.indexOf(shelf(target)) > shelves.indexOf(shelf(path)))
        .map((target) => `${path} includes ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  test('headers include each other in no circle', () => {
    const edges = new Map(
      native
        .filter((path) => path.endsWith('.h'))
        .map((path) => [path, ownIncludes(path).filter((target) => target !== path)]),
    );
    expect(findCircle(edges)).toEqual([]);
  });
});

test('the reader of imports sees every form', () => {
  const text = [
    "import { a } from './a.ts';",
    "import type { B } from './b.ts';",
    "import {\n  type C,\n  type D,\n} from '../c.ts';",
    "import { type E, f } from './e.ts';",
    "import './g.ts';",
    "export * from './h.ts';",
    "import hono from 'hono';",
    "const i = await import('./i.ts');",
  ].join('\n');
  expect(importsOf('server/x/y.ts', text).map(({ target, typeOnly }) => `${typeOnly ? 'type ' : ''}${target}`)).toEqual(
    [
      'server/x/a.ts',
      'type server/x/b.ts',
      'type server/c.ts',
      'server/x/e.ts',
      'server/x/g.ts',
      'server/x/h.ts',
      'hono',
      'server/x/i.ts',
    ],
  );
});

test('a circle is found', () => {
  expect(
    findCircle(
      new Map([
        ['a', ['b']],
        ['b', ['c']],
        ['c', ['b']],
      ]),
    ),
  ).toEqual(['b', 'c', 'b']);
});

// Total deadlines, largest sizes, and what is refused: base/outside.ts has them once. The others
// have limits of their own, or nothing outside that they call.
const besideTheDoor: Readonly<Record<string, string>> = {
  'server/app/open/instance-lock.ts': 'a socket of this host, between servers of one user',
  'server/clients/typescript/client.ts': 'the command: ends with what the user waits for',
  'server/clients/typescript/https.ts': 'the command: ends with what the user waits for',
  'server/clients/cloud-simulator/proxy.ts': 'a program of its own: the deadline of the cloud',
  'server/clients/cloud-simulator/server.ts': 'a program of its own, which listens',
  'server/fronts/listener/http2.ts': 'listens',
  'server/fronts/listener/listener.ts': 'listens',
  'server/fronts/listener/raw-connections.ts': 'listens',
  'server/adapters/store/engine/postgres/postgres-engine.ts': 'the database: docs/postgresql.md#time-limits',
  'server/adapters/store/engine/postgres/error-kinds.ts': 'the database: its errors',
  'server/adapters/store/engine/postgres/orderly-client.ts': 'the database: docs/postgresql.md#time-limits',
};
/** What these modules have that opens no connection. */
const harmless =
  /^(isIP|isIPv4|isIPv6|BlockList|rootCertificates|createSecureContext|constants as \w+|type .*|LookupAddress)$/;
const connecting =
  /^(?:undici|openid-client|nodemailer|pg|ws|node:(?:https?|http2|tls|net|dgram)|@aws-sdk\/[a-z-]+|@opentelemetry\/exporter-.+)$/;

test('what calls a receiver, a provider, a cloud or itself does so through the door to the outside', () => {
  const connects = (path: string): boolean => {
    const text = withoutComments(read(path));
    if (
      /(?<![\w.#])fetch\(/.test(text) ||
      /import\('([^']+)'\)/
        .exec(text)
        ?.slice(1)
        .some((each) => connecting.test(each))
    )
      return true;
    return [...text.matchAll(/^import (?!type )(?<names>[^;']*?) from '(?<source>[^']+)'/gm)].some(
      ({ groups: { names = '', source = '' } = {} }) =>
        connecting.test(source) &&
        names
          .replaceAll(/[{}]/g, '')
          .split(',')
          .map((name) => name.trim())
          .some((name) => name !== '' && !harmless.test(name)),
    );
  };
  const callers = files(['server'], '.ts').filter((path) => !path.startsWith('server/clients/web/') && connects(path));
  expect(callers).toContain('server/adapters/sinks/webhook.ts');
  expect(callers).toContain('server/adapters/telemetry/otlp.ts');
  const beside = callers.filter(
    (path) => !importsOf(path).some(({ target, typeOnly }) => target === 'server/base/outside.ts' && !typeOnly),
  );
  expect(beside.sort()).toEqual(Object.keys(besideTheDoor).sort());
  expect(connecting.test('node:tls') && !harmless.test('connect as connectTls')).toBe(true);
});
