// The actions of a list on the rows that were chosen: a button for each, and the dialog of the one
// that was pressed.

import { type ReactNode, useState } from 'react';
import { type ApiCall, send } from '../../api/client.ts';
import type { Permission } from '../../api/types.ts';
import { Button } from '../page/button.tsx';
import { BulkDialog } from './bulk.tsx';

export interface RowsAction<Row> {
  /** "Disable" */
  readonly verb: string;
  readonly needs: Permission;
  /** What follows, in a sentence. */
  readonly text: string;
  readonly danger?: boolean;
  readonly callOf: (row: Row) => ApiCall;
}

export const BulkActions = <Row,>({
  rows,
  actions,
  nouns: [one, many],
  nameOf,
  renews,
  onDone,
  children,
}: {
  rows: readonly Row[];
  actions: readonly RowsAction<Row>[];
  /** "key", "keys" */
  nouns: readonly [one: string, many: string];
  nameOf: (row: Row) => string;
  renews: readonly string[];
  onDone: () => void;
  /** Further buttons. */
  children?: ReactNode;
}) => {
  // The rows that were chosen then: a list that is read again may have lost them.
  const [chosen, setChosen] = useState<{ readonly action: RowsAction<Row>; readonly rows: readonly Row[] } | null>(
    null,
  );
  const count = chosen?.rows.length ?? 0;
  const what = count === 1 ? `1 ${one}` : `${count.toLocaleString('en-GB')} ${many}`;
  return (
    <>
      {rows.length > 0 && (
        <>
          {actions.map((action) => (
            <Button key={action.verb} needs={action.needs} opens onClick={() => setChosen({ action, rows })}>
              {action.verb}
            </Button>
          ))}
          {children}
        </>
      )}
      {chosen !== null && (
        <BulkDialog
          action={{
            title: `${chosen.action.verb} ${what}?`,
            submitLabel: `${chosen.action.verb} ${what}`,
            danger: chosen.action.danger ?? false,
            rows: chosen.rows,
            nameOf,
            act: (row) => send(chosen.action.callOf(row)),
            renews,
            children: <p>{chosen.action.text}</p>,
          }}
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
