// What a person sets on a list: columns, density, and the list as a file.

import { DropdownMenu } from 'radix-ui';
import { type ReactNode, useMemo, useState } from 'react';
import { formatTarget, type Query } from '../../api/client.ts';
import { useTenant } from '../../session/may.ts';
import { SelectFilter, TextFilter } from '../fields/filters.tsx';
import { useAnnounce } from '../page/announce.tsx';
import { Icon, type IconName } from '../page/icon.tsx';
import { ProblemView } from '../page/problem-view.tsx';
import type { Column } from './data-table.tsx';
import { type FileFormat, fileName, formatRows } from './export.ts';
import type { ListPage } from './rows.ts';
import { readRows, saveFile } from './save-list.ts';
import type { View } from './view.ts';

const item =
  'flex min-h-9 items-center gap-2.5 rounded-md px-2.5 py-1.5 outline-none data-[highlighted]:bg-hover data-[disabled]:text-muted';

const ToolMenu = ({ text, icon, children }: { text: string; icon: IconName; children: ReactNode }) => (
  <DropdownMenu.Root modal={false}>
    <DropdownMenu.Trigger className="inline-flex min-h-8 items-center gap-1.5 rounded-md px-2 text-xs font-medium text-muted hover:bg-hover hover:text-ink data-[state=open]:bg-hover">
      <Icon name={icon} className="size-3.5" />
      {text}
    </DropdownMenu.Trigger>
    <DropdownMenu.Portal>
      <DropdownMenu.Content
        align="end"
        sideOffset={4}
        collisionPadding={8}
        className="rise z-20 min-w-44 rounded-lg border border-line bg-raised p-1 shadow-float"
      >
        {children}
      </DropdownMenu.Content>
    </DropdownMenu.Portal>
  </DropdownMenu.Root>
);

const Checked = ({ on, text, onChange, disabled = false }: CheckedProps) => (
  <DropdownMenu.CheckboxItem
    checked={on}
    disabled={disabled}
    onCheckedChange={onChange}
    // Several are chosen in one go.
    onSelect={(event) => event.preventDefault()}
    className={item}
  >
    <span className="size-4">{on && <Icon name="check" />}</span>
    {text}
  </DropdownMenu.CheckboxItem>
);
interface CheckedProps {
  readonly on: boolean;
  readonly text: string;
  readonly onChange: (on: boolean) => void;
  readonly disabled?: boolean;
}

export const ViewMenu = <Row,>({
  columns,
  view,
  onView,
}: {
  columns: readonly Column<Row>[];
  view: View;
  onView: (change: Partial<View>) => void;
}) => (
  <ToolMenu text="View" icon="gear">
    {columns
      .filter(({ actions }) => actions !== true)
      .map(({ key, header, names }) => (
        <Checked
          key={key}
          text={header}
          on={names === true || !view.hidden.has(key)}
          disabled={names === true}
          onChange={(on) => {
            const hidden = new Set(view.hidden);
            if (on) hidden.delete(key);
            else hidden.add(key);
            onView({ hidden });
          }}
        />
      ))}
    <DropdownMenu.Separator className="my-1 border-t border-line" />
    <Checked text="Compact rows" on={view.compact} onChange={(compact) => onView({ compact })} />
  </ToolMenu>
);

/** Narrows a list to a name or a state, in the address like its order. */
export const Narrow = <Row,>({
  columns,
  rows: pages,
  named,
  view,
  onView,
}: {
  columns: readonly Column<Row>[];
  rows: readonly ListPage<Row>[];
  named: boolean;
  view: View;
  onView: (change: Partial<View>) => void;
}) => {
  const picked = columns.find(({ pick }) => pick !== undefined);
  const values = useMemo(
    () =>
      picked?.sort === undefined
        ? []
        : [...new Set(pages.flatMap(({ items }) => items.map((row) => String(picked.sort?.(row)))))].toSorted(),
    [pages, picked],
  );
  return (
    <search className="mr-auto flex flex-wrap items-end gap-2 px-2 pb-1">
      {named && (
        <TextFilter
          label="Name contains"
          value={view.name || undefined}
          onValue={(name) => onView({ name: name ?? '' })}
        />
      )}
      {picked?.pick !== undefined && (values.length > 1 || view.state !== '') && (
        <SelectFilter
          label={picked.header}
          value={view.state || undefined}
          onValue={(state) => onView({ state: state ?? '' })}
          choices={values.map((value) => ({ value, text: picked.pick?.(value) ?? value }))}
        />
      )}
    </search>
  );
};

const formats: readonly FileFormat[] = ['csv', 'ndjson'];

/**
 * The list with its filters as a file of the service, which records that it was taken: of the
 * list's own tenant, also for those who may export every tenant.
 */
export const RecordedExport = ({ path, filters }: { path: string; filters: Query }) => {
  const tenant = useTenant();
  return (
    <ToolMenu text="Export" icon="download">
      {formats.map((format) => (
        <DropdownMenu.Item key={format} asChild className={item}>
          <a href={formatTarget({ path, query: { tenant, ...filters, format } })} download>
            {format.toUpperCase()}
          </a>
        </DropdownMenu.Item>
      ))}
    </ToolMenu>
  );
};

/**
 * The list with its filters as a file; the page reads it from the service, from the beginning to
 * the end.
 */
export const ExportMenu = ({ path, filters }: { path: string; filters: Query }) => {
  const announce = useAnnounce();
  const [read, setRead] = useState<number | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const save = async (format: FileFormat): Promise<void> => {
    setFailure(null);
    setRead(0);
    try {
      const rows = await readRows(path, filters, setRead);
      saveFile(fileName(path, format), formatRows(rows, format), format);
      announce(`${rows.length.toLocaleString('en-GB')} rows saved as ${format.toUpperCase()}`);
    } catch (error) {
      setFailure(error);
    } finally {
      setRead(null);
    }
  };
  return (
    <>
      {read === null ? (
        <ToolMenu text="Export" icon="download">
          {formats.map((format) => (
            <DropdownMenu.Item key={format} onSelect={() => void save(format)} className={item}>
              {format.toUpperCase()}
            </DropdownMenu.Item>
          ))}
        </ToolMenu>
      ) : (
        <span role="status" className="px-2 text-xs text-muted">
          Reading for the file: {read.toLocaleString('en-GB')}
        </span>
      )}
      {failure !== null && (
        <div className="basis-full">
          <ProblemView error={failure} compact />
        </div>
      )}
    </>
  );
};
