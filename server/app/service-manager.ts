// What systemd learns of the service, where it has started it (Type=notify). It cannot ask for
// anything this way, and a service without it does the same.

import { core } from '../../addon/core.ts';

/** READY=1 counts once; STATUS is shown by `systemctl status`. */
export const tellServiceManager = (state: 'READY=1' | 'STOPPING=1', status: string): void => {
  const { NOTIFY_SOCKET: socket = '' } = process.env;
  if (socket !== '') core.tellServiceManager(socket, `${state}\nSTATUS=${status}`);
};
