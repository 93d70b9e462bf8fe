// A notice about nodes that have not confirmed a change and may still use the old state. It stays
// on every page until it is dismissed.

import { useEffect, useState } from 'react';
import { onPendingNodes } from '../api/client.ts';
import { IconButton } from '../ui/page/button.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { Time } from '../ui/page/time.tsx';

interface Pending {
  readonly nodes: readonly string[];
  /** The latest time of all; null: one has no limit. */
  readonly until: string | null;
}

const none: Pending = { nodes: [], until: '' };

export const PendingNodes = () => {
  const [{ nodes, until }, setPending] = useState(none);
  useEffect(() => {
    onPendingNodes((names, latest) =>
      setPending((before) => ({
        nodes: [...new Set([...before.nodes, ...names])].sort(),
        until: before.until === null || latest === null ? null : before.until > latest ? before.until : latest,
      })),
    );
    return () => onPendingNodes(() => undefined);
  }, []);
  return (
    <div role="alert">
      {nodes.length > 0 && (
        <div className="relative m-4 lg:mx-8">
          <Notice tone="warn" title={`The change is saved, but not confirmed by ${nodes.join(', ')}`}>
            {nodes.length === 1 ? 'This node' : 'These nodes'} may still use the old state until the change is confirmed
            {until === null ? (
              ', without a time limit'
            ) : (
              <>
                , until <Time value={until} seconds /> at the latest
              </>
            )}
            . <code>dke node list</code> shows the state of each node. Stop a node that does not respond.
          </Notice>
          <div className="absolute top-2 right-2">
            <IconButton icon="close" label="Dismiss the warning about nodes" onClick={() => setPending(none)} />
          </div>
        </div>
      )}
    </div>
  );
};
