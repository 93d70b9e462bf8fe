// Data about processes for the measurements: CPU time and memory as the kernel counts them, and CPU
// pinning.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

/**
 * CPU seconds (user and system, all threads) that a process has used so far. Source: proc(5),
 * /proc/pid/stat 14 and 15.
 */
export const cpuSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
};

const statusMiB = (pid: number, field: 'VmRSS' | 'VmHWM'): number => {
  const line = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? 0) / 1024;
};

/** Resident set in MiB: now, and the largest since the process started. */
export const residentMiB = (pid: number): number => statusMiB(pid, 'VmRSS');
export const peakResidentMiB = (pid: number): number => statusMiB(pid, 'VmHWM');

/** Binds every thread of a running process to the given CPUs (a list as taskset takes it). */
export const pin = (pid: number, cpus: string): void => {
  execFileSync('taskset', ['-a', '-p', '-c', cpus, String(pid)], { stdio: 'ignore' });
};
