// A session of an application of Cryptoki, as its functions see it.
import type { Application } from './application.ts';
import type { SessionState } from './session-state.ts';

export type Session = SessionState<Application>;
