// All pages are loaded once the first one is shown, so that a change of page needs no answer of the
// service: a browser that cannot load a page's code leaves for its own error page.

import type { AnyRouter } from '@tanstack/react-router';

type Loading = { readonly preload?: () => Promise<unknown> } | undefined;

/** Resolves when all are there, or one could not be loaded: it is loaded when it is opened. */
export const loadPages = async ({ routesById }: Pick<AnyRouter, 'routesById'>): Promise<void> => {
  try {
    for (const { options } of Object.values<{ readonly options: { readonly component?: unknown } }>(routesById))
      await (options.component as Loading)?.preload?.();
  } catch {
    // The service does not answer now.
  }
};
