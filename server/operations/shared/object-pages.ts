// Pages of token objects. An object has up to 64 KiB of attributes, so a page is bounded by bytes
// as well as by number: an answer fits into a message, and no caller waits for it. The rows are
// read a few at a time, and the store lets others go first between two statements.
import type { Repositories } from '../../ports/store.ts';
import type { StoredObject } from '../../ports/tde-repositories.ts';

export interface ObjectPage {
  readonly objects: readonly StoredObject[];
  /** Whether more may follow. */
  readonly more: boolean;
}

/** Rows of one statement. */
const rowsAtOnce = 16;
/** Most bytes of a page. An object that has more on its own is a page of its own. */
const mostBytes = 512 * 1024;
/** About what an object takes in an answer next to its longest members. */
const objectBytes = 1024;

const bytesOf = ({ attributes, label, publicKey }: StoredObject): number =>
  objectBytes + attributes.length + label.length + (publicKey?.length ?? 0);

/** The first objects behind `filter.after` that match, at most `limit`. */
export const readObjectPage = async (
  { objects }: Pick<Repositories, 'objects'>,
  filter: Parameters<Repositories['objects']['find']>[0],
  limit: number,
): Promise<ObjectPage> => {
  const page: StoredObject[] = [];
  let bytes = 0;
  for (let after = filter.after; ; after = page.at(-1)?.handle ?? after) {
    // One more than wanted tells whether there are more.
    const wanted = Math.min(rowsAtOnce, limit + 1 - page.length);
    const rows = await objects.find({ ...filter, after }, wanted);
    for (const row of rows) {
      bytes += bytesOf(row);
      if (page.length === limit || (bytes > mostBytes && page.length > 0)) return { objects: page, more: true };
      page.push(row);
    }
    if (rows.length < wanted) return { objects: page, more: false };
  }
};
