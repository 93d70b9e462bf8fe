// A command that only the host of the service may run: the console shows it, and does not run it.

import { CopyButton } from './copy.tsx';

export const HostCommand = ({ line, children }: { line: string; children: string }) => (
  <div className="space-y-1">
    <p>{children}</p>
    <p className="flex flex-wrap items-center gap-2">
      <code className="rounded-md bg-sunken px-2 py-1 wrap-anywhere">{line}</code>
      <CopyButton value={line} label={`command ${line}`} />
    </p>
  </div>
);
