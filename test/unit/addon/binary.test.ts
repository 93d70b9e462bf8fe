// The built dke_core.node as Node loads it: its imports from Node, its exports, its libraries. It
// must load into every Node from the floor on without being built again, next to Node's own
// libcrypto.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const binary = join(import.meta.dirname, '../../../build/Release/dke_core.node');
const run = (command: string, ...args: string[]): string => execFileSync(command, args, { encoding: 'utf8' });
const symbols = (kind: '--defined-only' | '--undefined-only'): string[] =>
  run('nm', '-D', kind, binary)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (line.trim().split(' ').at(-1) ?? '').replace(/@.*/, ''));

const version = 9;
interface VersionSymbols {
  readonly js_native_api_symbols: readonly string[];
  readonly node_api_symbols: readonly string[];
}
const headers = createRequire(import.meta.url)('node-api-headers') as {
  readonly symbols: Readonly<Record<string, VersionSymbols>>;
};
const symbolsOf = (name: string): string[] => {
  const found = headers.symbols[name];
  if (found === undefined) throw new Error(`node-api-headers has no ${name}`);
  return [...found.js_native_api_symbols, ...found.node_api_symbols];
};

describe('dke_core.node', () => {
  const taken = symbols('--undefined-only').filter((name) => /^(napi|node_api)_/.test(name));

  test(`takes from Node what Node-API ${version} has, and nothing newer`, () => {
    const allowed = new Set(Array.from({ length: version }, (_, index) => symbolsOf(`v${index + 1}`)).flat());
    expect(taken.length).toBeGreaterThan(20);
    expect(taken.filter((name) => !allowed.has(name))).toEqual([]);
  });

  test('takes one function of libuv beside it, and no V8, no OpenSSL', () => {
    const others = symbols('--undefined-only').filter((name) =>
      /^(_ZN?K?2v8|_ZN?K?4node|uv_|EVP_|CRYPTO_|OPENSSL_|RSA_|EC_|SSL_|X509_|BIO_|BN_|ERR_|RAND_)/.test(name),
    );
    // The frame server watches its thread's event loop by it. libuv keeps its ABI within version 1,
    // which Node-API relies on, too.
    expect(others).toEqual(['uv_backend_fd']);
    expect(process.versions.uv).toMatch(/^1\./);
  });

  test('shows what Node looks for, and nothing else', () => {
    const weak = symbols('--defined-only').filter((name) => name !== '_init' && name !== '_fini');
    expect(weak.sort()).toEqual(['napi_register_module_v1', 'node_api_module_get_api_version_v1']);
  });

  test('is bound as it is loaded, stays loaded, and runs nothing on its stack', () => {
    const dynamic = run('readelf', '-d', binary);
    expect(dynamic).toMatch(/FLAGS_1.*NOW/);
    expect(dynamic).toMatch(/FLAGS_1.*NODELETE/);
    expect(dynamic).not.toContain('TEXTREL');
    const segments = run('readelf', '-lW', binary);
    expect(segments).toContain('GNU_RELRO');
    expect(segments).not.toMatch(/GNU_STACK.*RWE/);
  });

  test(`says that it was built for Node-API ${version}`, () => {
    const report = JSON.parse(
      run(
        process.execPath,
        '-e',
        `const m = { exports: {} }; process.dlopen(m, ${JSON.stringify(binary)}); console.log(JSON.stringify({ napi: process.versions.napi, names: Object.keys(m.exports).length }))`,
      ),
    ) as { readonly napi: string; readonly names: number };
    expect(Number(report.napi)).toBeGreaterThanOrEqual(version);
    expect(report.names).toBeGreaterThan(50);
    const declared = createRequire(import.meta.url)('../../../package.json') as {
      readonly binary: { readonly napi_versions: readonly number[] };
    };
    expect(declared.binary.napi_versions).toEqual([version]);
  });
});

test('a Node addon that loads beside Node’s own libcrypto keeps its own', () => {
  // Node and the addon compute in turns in one process: if one had replaced the other's symbols,
  // the allocator would abort.
  const script = `
    const { createHash, generateKeyPairSync } = require('node:crypto');
    const m = { exports: {} };
    process.dlopen(m, ${JSON.stringify(binary)});
    m.exports.initialize({ allowUnlocked: true });
    for (let round = 0; round < 100; round++) {
      generateKeyPairSync('ec', { namedCurve: 'P-256' });
      m.exports.release(m.exports.generateEc('p256'));
      const out = Buffer.alloc(32);
      m.exports.digest('sha256', Buffer.from([round]), out);
      if (!out.equals(createHash('sha256').update(Buffer.from([round])).digest())) throw new Error('another digest');
    }
    console.log('same');
  `;
  expect(run(process.execPath, '-e', script)).toBe('same\n');
});

test('is steered by no configuration of OpenSSL of the host or the environment', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dke-openssl-'));
  try {
    const file = join(folder, 'openssl.cnf');
    // The file activates only the null provider, which can do nothing. Node reads another section.
    writeFileSync(file, 'openssl_conf = a\n[a]\nproviders = b\n[b]\nnull = c\n[c]\nactivate = 1\n');
    const program = `const out = Buffer.alloc(32); require(${JSON.stringify(binary)}).digest('sha256', Buffer.alloc(0), out);
      process.stdout.write(out.toString('hex'))`;
    const said = execFileSync(process.execPath, ['-e', program], {
      encoding: 'utf8',
      env: { ...process.env, OPENSSL_CONF: file },
    });
    expect(said).toMatch(/^e3b0c44298fc1c14/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
