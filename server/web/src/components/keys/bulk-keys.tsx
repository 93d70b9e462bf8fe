// Actions on several keys of the list: disable, enable, rotate, tag.

import { useState } from 'react';
import { send } from '../../api/client.ts';
import type { Key } from '../../api/types.ts';
import { readTags, TagsField } from '../fields/tags.tsx';
import { readTagged } from '../forms/edit-dialog.tsx';
import { Button } from '../page/button.tsx';
import { type BulkAction, BulkDialog } from '../table/bulk.tsx';
import { keyPath, keysPath } from './keys.ts';

const plain = {
  disable: {
    verb: 'Disable',
    text: 'Requests that use these keys will fail until you enable them again. No data is lost.',
    danger: true,
  },
  enable: { verb: 'Enable', text: 'They can be used again at once.', danger: false },
  rotate: {
    verb: 'Rotate',
    text: 'New data is encrypted with a new version. Earlier versions can still decrypt their data.',
    danger: false,
  },
} as const;
type Plain = keyof typeof plain;

const count = (keys: readonly Key[]): string =>
  keys.length === 1 ? '1 key' : `${keys.length.toLocaleString('en-GB')} keys`;

const addTags = async ({ id }: Key, tags: readonly string[]): Promise<void> => {
  const { data, etag } = await readTagged<Key>(keyPath(id));
  const body = { name: data.name, tags: [...new Set([...data.tags, ...tags])] };
  await send({ method: 'PUT', path: keyPath(id), body }, { ifMatch: etag });
};

export const BulkKeys = ({ keys, onDone }: { keys: readonly Key[]; onDone: () => void }) => {
  // The rows that were chosen then: a list that is read again may have lost them.
  const [chosen, setChosen] = useState<{ readonly what: Plain | 'tag'; readonly rows: readonly Key[] } | null>(null);
  const [text, setText] = useState('');
  const tags = readTags(text);
  const rows = chosen?.rows ?? [];
  const shared = { rows, nameOf: ({ name }: Key) => name, renews: [keysPath] };
  const action = ((): BulkAction<Key> | undefined => {
    if (chosen === null) return undefined;
    if (chosen.what === 'tag')
      return {
        ...shared,
        title: `Add tags to ${count(rows)}?`,
        submitLabel: 'Add tags',
        act: (key) => addTags(key, tags),
        submitDisabled: tags.length === 0,
        children: <TagsField value={text} onValue={setText} fault={() => undefined} />,
      };
    const { verb, text: consequence, danger } = plain[chosen.what];
    return {
      ...shared,
      title: `${verb} ${count(rows)}?`,
      submitLabel: `${verb} ${count(rows)}`,
      danger,
      act: ({ id }) => send({ method: 'POST', path: `${keyPath(id)}/${chosen.what}` }),
      children: <p>{consequence}</p>,
    };
  })();
  return (
    <>
      {keys.length > 0 && (
        <>
          {(['disable', 'enable', 'rotate'] as const).map((what) => (
            <Button key={what} needs="keys:manage" opens onClick={() => setChosen({ what, rows: keys })}>
              {`${plain[what].verb}`}
            </Button>
          ))}
          <Button needs="keys:manage" opens onClick={() => setChosen({ what: 'tag', rows: keys })}>
            Add tags
          </Button>
        </>
      )}
      {action !== undefined && (
        <BulkDialog
          action={action}
          onClose={() => setChosen(null)}
          onDone={() => {
            setChosen(null);
            onDone();
          }}
        />
      )}
    </>
  );
};
