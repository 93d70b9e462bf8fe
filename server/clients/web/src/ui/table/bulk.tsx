// One action on several rows: one confirmation that names them, then one after the other, and what
// became of each.

import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useRef, useState } from 'react';
import { ApiProblem } from '../../api/client.ts';
import { Dialog, DialogActions } from '../forms/dialog.tsx';
import { useAnnounce } from '../page/announce.tsx';
import { Button } from '../page/button.tsx';
import { Icon } from '../page/icon.tsx';
import { renew } from './shorten-lists.ts';

export interface BulkAction<Row> {
  /** "Disable 3 keys?" */
  readonly title: string;
  readonly submitLabel: string;
  readonly danger?: boolean;
  readonly rows: readonly Row[];
  readonly nameOf: (row: Row) => string;
  /** Throws ApiProblem. */
  readonly act: (row: Row) => Promise<unknown>;
  readonly renews: readonly string[];
  readonly children?: ReactNode;
  readonly submitDisabled?: boolean;
}

interface Result {
  /** Its place: names repeat. */
  readonly id: number;
  readonly name: string;
  /** Undefined: done. */
  readonly failure: string | undefined;
}

const mostNamed = 12;

const reason = (error: unknown): string =>
  error instanceof ApiProblem ? `${error.title}. ${error.message}` : 'The page had an error.';

const Results = ({ results, left }: { results: readonly Result[]; left: number }) => {
  const failed = results.filter(({ failure }) => failure !== undefined);
  return (
    <>
      <p role="status">
        {results.length - failed.length} done, {failed.length} refused{left > 0 && `, ${left} left`}.
      </p>
      <ul className="max-h-72 space-y-1 overflow-y-auto" aria-label="Results">
        {results.map(({ id, name, failure }) => (
          <li key={id} className="flex items-start gap-2 wrap-anywhere">
            <Icon
              name={failure === undefined ? 'check' : 'warning'}
              className={`mt-0.5 size-4 ${failure === undefined ? 'text-ok' : 'text-danger'}`}
            />
            <span>
              {name}
              <span className="text-muted"> {failure === undefined ? 'done' : failure}</span>
            </span>
          </li>
        ))}
      </ul>
    </>
  );
};

export const BulkDialog = <Row,>({
  action: { title, submitLabel, danger = false, rows, nameOf, act, renews, children, submitDisabled = false },
  onClose,
  onDone,
}: {
  action: BulkAction<Row>;
  onClose: () => void;
  /** Something was done. */
  onDone: () => void;
}) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const [results, setResults] = useState<readonly Result[] | null>(null);
  const [running, setRunning] = useState(false);
  const stopped = useRef(false);
  const run = async (): Promise<void> => {
    setRunning(true);
    const all: Result[] = [];
    for (const row of rows) {
      if (stopped.current) break;
      const failure = await act(row).then(() => undefined, reason);
      all.push({ id: all.length, name: nameOf(row), failure });
      setResults([...all]);
    }
    await renew(client, renews);
    setRunning(false);
    announce(`${all.filter(({ failure }) => failure === undefined).length} of ${rows.length} done`);
  };
  const close = (): void => {
    if (running) stopped.current = true;
    else if (results === null) onClose();
    else onDone();
  };
  return (
    <Dialog title={title} onClose={close}>
      {results === null ? (
        <div className="space-y-3">
          {children}
          <p className="wrap-anywhere">
            {rows.slice(0, mostNamed).map(nameOf).join(', ')}
            {rows.length > mostNamed && ` and ${(rows.length - mostNamed).toLocaleString('en-GB')} more`}
          </p>
        </div>
      ) : (
        <Results results={results} left={rows.length - results.length} />
      )}
      <DialogActions>
        {results === null && !running ? (
          <>
            <Button data-cancel onClick={onClose}>
              Cancel
            </Button>
            <Button tone={danger ? 'danger' : 'primary'} disabled={submitDisabled} onClick={() => void run()}>
              {submitLabel}
            </Button>
          </>
        ) : (
          <Button tone={running ? 'plain' : 'primary'} onClick={close}>
            {running ? 'Stop' : 'Done'}
          </Button>
        )}
      </DialogActions>
    </Dialog>
  );
};
