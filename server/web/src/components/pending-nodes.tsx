// A change was made here, and some nodes did not confirm it: what was taken away may still be used there. Stays on every page until
// somebody has read it.

import { useEffect, useState } from 'react';
import { onPendingNodes } from '../api/client.ts';
import { IconButton } from './button.tsx';
import { Notice } from './notice.tsx';

export const PendingNodes = () => {
  const [nodes, setNodes] = useState<readonly string[]>([]);
  useEffect(() => {
    onPendingNodes((names) => setNodes((before) => [...new Set([...before, ...names])].sort()));
    return () => onPendingNodes(() => undefined);
  }, []);
  return (
    <div role="alert">
      {nodes.length > 0 && (
        <div className="relative m-4 lg:mx-8">
          <Notice tone="warn" title={`The change is made, but not confirmed by ${nodes.join(', ')}`}>
            {nodes.length === 1 ? 'This node' : 'These nodes'} may go on with what was before, until they hear of it or
            their time without the database is over. <code>dke node list</code> shows until when; stop a node that
            stands still.
          </Notice>
          <div className="absolute top-2 right-2">
            <IconButton icon="close" label="Dismiss the warning about nodes" onClick={() => setNodes([])} />
          </div>
        </div>
      )}
    </div>
  );
};
