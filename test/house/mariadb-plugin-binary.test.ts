// The built dke_key_management.so as MariaDB meets it: what it exports and what it needs.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { plugin } from '../support/mariadb.ts';

const run = (command: string, ...args: string[]): string => execFileSync(command, args, { encoding: 'utf8' });

describe.runIf(existsSync(plugin))('dke_key_management.so', () => {
  test('exports its declaration and the service that MariaDB fills in, and nothing else', () => {
    const names = run('nm', '-D', '--defined-only', plugin)
      .trim()
      .split('\n')
      .map((line) => line.split(' ').at(-1));
    expect(names.sort()).toEqual([
      '_maria_plugin_declarations_',
      '_maria_plugin_interface_version_',
      '_maria_sizeof_struct_st_plugin_',
      'my_print_error_service',
    ]);
  });

  test('is bound as it is loaded, and its tables are read-only then', () => {
    expect(run('readelf', '-d', plugin)).toMatch(/FLAGS.*(BIND_NOW|NOW)/);
    expect(run('readelf', '-lW', plugin)).not.toMatch(/GNU_STACK.*RWE/);
  });
});

if (!existsSync(plugin)) console.log('skipped: dke_key_management.so is not built (package libmariadbd-dev)');
