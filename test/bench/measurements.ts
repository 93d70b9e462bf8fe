// The PKCS#11 measurements, their references and goals. Rows only: pkcs11.ts runs them, main.ts
// compares and prints.

import { ourName } from './ours.ts';
import { p11Kit, softHsm } from './peers.ts';
import type { Measurement, Sample } from './pkcs11.ts';

/** What is wanted of a row. A ratio above 1 means that we are so many times faster. */
export type Goal =
  | { readonly kind: 'peer'; readonly peer: string; readonly times: number }
  /** At least so many times as fast as our own figure in another row. */
  | { readonly kind: 'row'; readonly title: string; readonly times: number }
  | { readonly kind: 'below'; readonly field: keyof Sample; readonly milliseconds: number };

export interface Row extends Measurement {
  /** All of them when absent. */
  readonly peers?: readonly string[];
  readonly goals?: readonly Goal[];
  /** Calls per second of all workers instead of the time of one call. */
  readonly throughput?: true;
}

const times = (peer: string, times: number): Goal => ({ kind: 'peer', peer, times });
const oneCpu = { cpus: '0' } as const;
const init = 'EncryptInit + Encrypt';

// Strict: two keys in turn, so that no Init is that of the message before and each travels on its
// own. Debian's p11-kit carries no AES-CBC and no AES-GCM: ECB and HMAC are compared with it.
export const rows: readonly Row[] = [
  {
    title: `${init}, ECB 48 bytes, one CPU, strict`,
    scenario: 'ecb-strict',
    ...oneCpu,
    iterations: { default: 20_000 },
    goals: [times(p11Kit, 3), times(softHsm, 0.65)],
  },
  {
    title: `${init}, ECB 48 bytes, one CPU`,
    scenario: 'ecb',
    ...oneCpu,
    iterations: { default: 20_000 },
    goals: [times(p11Kit, 3), times(softHsm, 1.2)],
  },
  { title: `${init}, ECB 48 bytes, strict`, scenario: 'ecb-strict', iterations: { default: 10_000 } },
  { title: `${init}, ECB 48 bytes`, scenario: 'ecb', iterations: { default: 10_000 }, goals: [times(p11Kit, 5)] },
  {
    title: `${init}, CBC 48 bytes, one CPU, strict`,
    scenario: 'cbc-strict',
    ...oneCpu,
    iterations: { default: 20_000 },
    peers: [softHsm],
    goals: [times(softHsm, 0.65)],
  },
  {
    title: `${init}, CBC 48 bytes, one CPU`,
    scenario: 'cbc',
    ...oneCpu,
    iterations: { default: 20_000 },
    peers: [softHsm],
    goals: [times(softHsm, 1.2)],
  },
  {
    // Java's SunPKCS11 encrypts with these three calls; all travel together.
    title: 'EncryptInit + Update + Final, CBC 48 bytes, one CPU',
    scenario: 'cbc-parts',
    ...oneCpu,
    iterations: { default: 20_000 },
    peers: [softHsm],
  },
  {
    title: 'EncryptInit + Update + Final, CBC 48 bytes',
    scenario: 'cbc-parts',
    iterations: { default: 20_000 },
    peers: [softHsm],
  },
  {
    title: `${init}, GCM 48 bytes, one CPU, strict`,
    scenario: 'gcm-strict',
    ...oneCpu,
    iterations: { default: 20_000 },
    peers: [softHsm],
    goals: [times(softHsm, 0.65)],
  },
  {
    title: `${init}, GCM 48 bytes, one CPU`,
    scenario: 'gcm',
    ...oneCpu,
    iterations: { default: 20_000 },
    peers: [softHsm],
  },
  {
    title: 'SignInit + Sign, HMAC-SHA256 48 bytes, one CPU, strict',
    scenario: 'hmac-strict',
    ...oneCpu,
    iterations: { default: 20_000 },
    goals: [times(p11Kit, 3), times(softHsm, 0.65)],
  },
  {
    title: 'SignInit + Sign, HMAC-SHA256 48 bytes, one CPU',
    scenario: 'hmac',
    ...oneCpu,
    iterations: { default: 20_000 },
    goals: [times(p11Kit, 3), times(softHsm, 1.2)],
  },
  { title: 'SignInit + Sign, RSA-PSS 2048, one CPU', scenario: 'pss', ...oneCpu, iterations: { default: 400 } },
  { title: 'SignInit + Sign, ECDSA P-256, one CPU', scenario: 'ecdsa', ...oneCpu, iterations: { default: 3_000 } },
  {
    title: `${init}, ECB 48 bytes, 8 threads, strict`,
    scenario: 'ecb-strict',
    threads: 8,
    iterations: { default: 3_000 },
    throughput: true,
  },
  {
    title: `${init}, ECB 48 bytes, 8 threads`,
    scenario: 'ecb',
    threads: 8,
    iterations: { default: 3_000 },
    throughput: true,
  },
  {
    title: `${init}, ECB 48 bytes, 8 processes, strict`,
    scenario: 'ecb-strict',
    processes: 8,
    iterations: { default: 5_000 },
    throughput: true,
    goals: [times(p11Kit, 2.8)],
  },
  {
    title: `${init}, ECB 48 bytes, 8 processes`,
    scenario: 'ecb',
    processes: 8,
    iterations: { default: 5_000 },
    throughput: true,
  },
  {
    title: `${init}, GCM 48 bytes, 8 processes`,
    scenario: 'gcm',
    processes: 8,
    iterations: { default: 5_000 },
    peers: [softHsm],
    throughput: true,
  },
  {
    title: `${init}, ECB 48 bytes, 64 processes, strict`,
    scenario: 'ecb-strict',
    processes: 64,
    iterations: { default: 500 },
    throughput: true,
  },
  {
    title: `${init}, ECB 48 bytes, 64 processes`,
    scenario: 'ecb',
    processes: 64,
    iterations: { default: 500 },
    throughput: true,
  },
  {
    // Every process has connected before the first call is measured; then all of them call without
    // a pause. A message is two calls here.
    title: `${init}, ECB 48 bytes, 500 processes, strict`,
    scenario: 'ecb-strict',
    processes: 500,
    iterations: { default: 50 },
    peers: [softHsm],
    throughput: true,
    rounds: 11,
    goals: [{ kind: 'below', field: 'p99Ns', milliseconds: 25 }],
  },
  {
    // A message is one call here, from a client that keeps to its key.
    title: `${init}, ECB 48 bytes, 500 processes`,
    scenario: 'ecb',
    processes: 500,
    iterations: { default: 50 },
    peers: [softHsm],
    throughput: true,
    rounds: 11,
    goals: [{ kind: 'below', field: 'p99Ns', milliseconds: 25 }],
  },
  { title: 'GenerateRandom(32), one CPU', scenario: 'random', ...oneCpu, iterations: { default: 20_000 } },
  { title: 'GenerateRandom(32)', scenario: 'random', iterations: { default: 20_000 } },
  {
    title: 'GenerateKey + DestroyObject, AES-256, one CPU',
    scenario: 'generate',
    ...oneCpu,
    iterations: { default: 3_000 },
    goals: [times(softHsm, 1)],
  },
  {
    title: 'GetAttributeValue, label, one CPU',
    scenario: 'attribute',
    ...oneCpu,
    iterations: { default: 20_000 },
    goals: [times(softHsm, 1)],
  },
  {
    title: 'heartbeat of 300 keys',
    scenario: 'heartbeat-300',
    iterations: { default: 3 },
    rounds: 2,
    peers: [softHsm],
    goals: [{ kind: 'below', field: 'p99Ns', milliseconds: 100 }],
  },
  {
    title: 'heartbeat of 1,000 keys',
    scenario: 'heartbeat-1000',
    iterations: { default: 3 },
    rounds: 2,
    peers: [softHsm],
    goals: [{ kind: 'below', field: 'p99Ns', milliseconds: 3000 }],
  },
  {
    title: 'values of 1,200 metadata objects',
    scenario: 'values-1200',
    iterations: { default: 3 },
    rounds: 2,
    peers: [softHsm],
  },
  { title: 'FindObjects by label among 1,000', scenario: 'find', iterations: { default: 50, [ourName]: 2_000 } },
  {
    title: 'FindObjects by label among 10,000',
    scenario: 'find-10000',
    iterations: { default: 5, [ourName]: 2_000 },
    rounds: 3,
    // An index lookup, not a scan: ten times as many objects take no longer, within the machine's
    // variation.
    goals: [{ kind: 'row', title: 'FindObjects by label among 1,000', times: 0.75 }],
  },
  {
    title: 'FindObjects by label, session objects only, among 1,000, one CPU',
    scenario: 'find-session-1000',
    ...oneCpu,
    iterations: { default: 50, [ourName]: 5_000 },
    peers: [softHsm],
  },
  {
    title: 'FindObjects by label, session objects only, among 10,000, one CPU',
    scenario: 'find-session-10000',
    ...oneCpu,
    iterations: { default: 5, [ourName]: 5_000 },
    peers: [softHsm],
    rounds: 3,
    goals: [{ kind: 'row', title: 'FindObjects by label, session objects only, among 1,000, one CPU', times: 0.75 }],
  },
  {
    title: 'FindObjects by class and id, session objects only, among 1,000, one CPU',
    scenario: 'find-id-1000',
    ...oneCpu,
    iterations: { default: 50, [ourName]: 1_000 },
    peers: [softHsm],
  },
  {
    title: 'FindObjects by class and id, session objects only, among 10,000, one CPU',
    scenario: 'find-id-10000',
    ...oneCpu,
    iterations: { default: 5, [ourName]: 1_000 },
    peers: [softHsm],
    rounds: 3,
    goals: [
      { kind: 'row', title: 'FindObjects by class and id, session objects only, among 1,000, one CPU', times: 0.75 },
    ],
  },
  {
    // From fork to end: load, login, find a token key, decrypt once, end. Our last two steps call
    // the service.
    title: 'a new process: load, login, find, one decrypt with a token key',
    scenario: 'new-process',
    iterations: { default: 500 },
    rounds: 1,
  },
  {
    title: 'token key in the service: EncryptInit + Encrypt, CBC 48 bytes',
    scenario: 'token-cbc',
    iterations: { default: 2_000 },
    peers: [softHsm],
  },
  {
    title: 'token key in the service, 8 processes',
    scenario: 'token-cbc',
    processes: 8,
    iterations: { default: 1_000 },
    peers: [softHsm],
    throughput: true,
  },
];
