// Actions on several keys of the list: disable, enable, rotate, tag.

import { useState } from 'react';
import { send } from '../api/client.ts';
import { keyPath, keysPath } from '../api/paths.ts';
import type { Key } from '../api/types.ts';
import { readTagged } from '../ui/forms/edit-dialog.tsx';
import { Button } from '../ui/page/button.tsx';
import { BulkDialog } from '../ui/table/bulk.tsx';
import { BulkActions, type RowsAction } from '../ui/table/bulk-actions.tsx';
import { readTags, TagsField } from './tags.tsx';

const post =
  (verb: string) =>
  ({ id }: Key) =>
    ({ method: 'POST', path: `${keyPath(id)}/${verb}` }) as const;
const actions: readonly RowsAction<Key>[] = [
  {
    ...{ verb: 'Disable', needs: 'keys:manage', danger: true, callOf: post('disable') },
    text: 'Requests that use these keys will fail until you enable them again. No data is lost.',
  },
  {
    ...{ verb: 'Enable', needs: 'keys:manage', callOf: post('enable') },
    text: 'They can be used again at once.',
  },
  {
    ...{ verb: 'Rotate', needs: 'keys:manage', callOf: post('rotate') },
    text: 'New data is encrypted with a new version. Earlier versions can still decrypt their data.',
  },
];

const nameOf = ({ name }: Key): string => name;

const addTags = async ({ id }: Key, tags: readonly string[]): Promise<void> => {
  const { data, etag } = await readTagged<Key>(keyPath(id));
  const body = { name: data.name, tags: [...new Set([...data.tags, ...tags])] };
  await send({ method: 'PUT', path: keyPath(id), body }, { ifMatch: etag });
};

export const BulkKeys = ({ keys, onDone }: { keys: readonly Key[]; onDone: () => void }) => {
  const [tagged, setTagged] = useState<readonly Key[] | null>(null);
  const [text, setText] = useState('');
  const tags = readTags(text);
  const count = tagged?.length ?? 0;
  return (
    <>
      <BulkActions
        rows={keys}
        actions={actions}
        nouns={['key', 'keys']}
        nameOf={nameOf}
        renews={[keysPath]}
        onDone={onDone}
      >
        <Button needs="keys:manage" opens onClick={() => setTagged(keys)}>
          Add tags
        </Button>
      </BulkActions>
      {tagged !== null && (
        <BulkDialog
          action={{
            title: `Add tags to ${count === 1 ? '1 key' : `${count.toLocaleString('en-GB')} keys`}?`,
            submitLabel: 'Add tags',
            rows: tagged,
            nameOf,
            renews: [keysPath],
            act: (key) => addTags(key, tags),
            submitDisabled: tags.length === 0,
            children: <TagsField value={text} onValue={setText} fault={() => undefined} />,
          }}
          onClose={() => setTagged(null)}
          onDone={() => {
            setTagged(null);
            onDone();
          }}
        />
      )}
    </>
  );
};
