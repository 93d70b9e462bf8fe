// Cursor paging: `next` is the cursor of the following page, null on the last one.

export interface PageRequest {
  /** The `next` of the page before; absent for the first page. */
  readonly after?: string | undefined;
  /** 1 to 1000; 100 when absent. */
  readonly limit?: number | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
  /** How many match in all: of the first page of a list that is counted, when there are more. */
  readonly total?: number | undefined;
}

export const defaultPageSize = 100;
export const largestPageSize = 1000;
