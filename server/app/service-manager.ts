// What systemd learns of the service, where it has started it (Type=notify). It cannot ask for
// anything this way, and a service without it does the same.

import { core } from '../../addon/core.ts';

const againMs = 200;
let again: NodeJS.Timeout | undefined;

/**
 * READY=1 counts once; STATUS is shown by `systemctl status`. Every user of the host may send
 * there, and fill the queue: what found no place is told again, until something newer is told.
 */
export const tellServiceManager = (state: 'READY=1' | 'STOPPING=1', status: string): void => {
  clearTimeout(again);
  const { NOTIFY_SOCKET: socket = '' } = process.env;
  if (socket === '' || core.tellServiceManager(socket, `${state}\nSTATUS=${status}`)) return;
  again = setTimeout(() => tellServiceManager(state, status), againMs).unref();
};
