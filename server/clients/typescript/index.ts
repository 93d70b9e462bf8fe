// The package @dke/client.

export { type Calls, type Client, openClient } from './client.ts';
export { ApprovalRequired, ConnectionError, ProblemError, UnexpectedAnswer } from './client-errors.ts';
export { type Operations, operations } from './gen/operations.ts';
export type * as Types from './gen/types.ts';
export type { FileAnswer, FileBody, Operation } from './operation.ts';
export type { Answer, CallOptions, PendingNodes, Settings, Token } from './send.ts';
