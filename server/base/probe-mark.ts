// The mark by which the nodes of a service recognize the requests of their own diagnostics, so that
// these do not count as use, latency or refusals of an endpoint. The name of the operation in a
// request is not enough: it could hide the use of a stolen credential.

import { timingSafeEqual } from 'node:crypto';
import type { RowAuthenticator } from './row-jobs.ts';

/** kmsOperation of the service's own requests: no operation of the cloud has this name. */
export const diagnosticsOperation = 'DkeDiagnostics';
export const probeMarkHeader = 'x-dke-probe';
/** Nodes' clocks may differ, and a probe takes seconds. */
const validMs = 60_000;

export interface ProbeMarks {
  /** For one path, now. */
  make(path: string): string;
  isValid(path: string, mark: string): boolean;
}

/** `authenticate`: 64 hexadecimal digits, the same on all nodes. */
export const createProbeMarks = (authenticate: RowAuthenticator, now: () => number): ProbeMarks => {
  const codeOf = (path: string, at: string): string => authenticate(`own probe ${at} ${path}`, 'dke own probes 1');
  return {
    make: (path) => {
      const at = String(now());
      return `${at}.${codeOf(path, at)}`;
    },
    isValid: (path, mark) => {
      const [, at = '', code = ''] = /^([0-9]{1,15})\.([0-9a-f]{64})$/.exec(mark) ?? [];
      if (at === '' || Math.abs(now() - Number(at)) > validMs) return false;
      return timingSafeEqual(Buffer.from(code), Buffer.from(codeOf(path, at)));
    },
  };
};
