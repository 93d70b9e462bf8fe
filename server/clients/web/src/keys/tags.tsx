// Tags of keys: as labels, each a link to the keys that have the tag, and as a field of words
// separated by spaces.

import { Link } from '@tanstack/react-router';
import { TextField } from '../ui/fields/field.tsx';

export const Tags = ({ tags }: { tags: readonly string[] }) =>
  tags.length === 0 ? null : (
    <ul className="flex flex-wrap gap-1" aria-label="Tags">
      {tags.map((tag) => (
        <li key={tag}>
          <Link
            to="/keys"
            search={{ tag }}
            className="inline-block rounded border border-line bg-sunken px-1.5 py-0.5 text-xs text-ink wrap-anywhere hover:underline"
          >
            {tag}
          </Link>
        </li>
      ))}
    </ul>
  );

export const readTags = (text: string): readonly string[] => text.split(/[\s,]+/).filter((tag) => tag !== '');

export const TagsField = ({
  value,
  onValue,
  fault,
}: {
  value: string;
  onValue: (value: string) => void;
  /** The fault in a field, by the field's path in the body; undefined: there is none. */
  fault: (path: string) => string | undefined;
}) => {
  const wrong = readTags(value).flatMap((tag, at) => {
    const message = fault(`tags.${at}`);
    return message === undefined ? [] : [`${tag}: ${message}`];
  });
  return (
    <TextField
      label="Tags"
      optional
      help="Separate with spaces, such as env=prod pci. At most 20, with lower-case letters, digits and - . _ : = / only."
      value={value}
      onValue={onValue}
      fault={fault('tags') ?? wrong[0]}
      autoCapitalize="off"
    />
  );
};
