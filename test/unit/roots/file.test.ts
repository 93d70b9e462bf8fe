// The plain root key file (addon/FORMAT.md, 2) as a provider of the root key.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { core } from '../../../addon/core.ts';
import { openFileRoot } from '../../../server/adapters/roots/file-root.ts';
import { folderOfTest } from '../../support/folders.ts';

core.initialize({ allowUnlocked: true });

test('a file that has two root keys takes no third one, and keeps both', () => {
  const folder = folderOfTest();
  const root = openFileRoot(core, join(folder, 'root.key'), true);
  root.addEpoch();
  expect(() => root.addEpoch()).toThrow('the root key file already has two epochs: erase the older one first');
  expect([root.current.epoch, root.previous?.epoch]).toEqual([2, 1]);
  root.erasePrevious();
  root.addEpoch();
  expect([root.current.epoch, root.previous?.epoch]).toEqual([3, 2]);
  root.release();
});
