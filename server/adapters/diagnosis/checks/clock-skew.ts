// SigV4: this clock is right. Requests more than five minutes off are refused.

import { notAsked, ok, warning } from '../../../base/diagnostic-checks.ts';
import { refusalReasons } from '../../../base/refusal-reasons.ts';
import { type EndpointCheck, foretold, suspected } from '../context.ts';

const warnMs = 1_000;
const failMs = 60_000;

const seconds = (ms: number): string => `${Math.abs(ms / 1000).toFixed(1)} s ${ms > 0 ? 'behind' : 'ahead'}`;

export const clock: EndpointCheck = {
  id: 'clock',
  layer: 'sigv4',
  title: "this node's clock is correct",
  fault: "this node's clock is wrong",
  needs: [],
  run: ({ callerAheadMs, recent, unsigned }) => {
    const fix = 'let chrony or systemd-timesyncd set the clock';
    const exception = 'clock';
    if (callerAheadMs !== null && Math.abs(callerAheadMs) > failMs)
      return foretold(exception, `this clock is ${seconds(callerAheadMs)} of the caller's clock`, fix);
    const [latest] = unsigned.filter(({ operation }) => operation !== 'unknown');
    if (latest?.reason?.startsWith(refusalReasons.skew) === true && latest.at > (recent[0]?.at ?? 0))
      return suspected(exception, `the latest request was refused: ${latest.reason}`, fix);
    if (callerAheadMs === null) return notAsked('no reference time');
    return Math.abs(callerAheadMs) > warnMs
      ? warning(`this clock is ${seconds(callerAheadMs)} of the caller's clock`, fix)
      : ok(`within ${Math.abs(callerAheadMs).toFixed(0)} ms of the caller's clock`);
  },
};
