// SIGUSR1 opens Node's inspector, over which any user of the host reads the memory of the process,
// keys included; SIGUSR2 ends the process. Neither means anything here. Programs that are installed
// start with --disable-sigusr1 besides: it holds before this runs.

/** To be called before anything else: a signal before the first listener is Node's. */
export const ignoreForeignSignals = (): void => {
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => undefined);
};
