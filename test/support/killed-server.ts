// Ends a real server with SIGKILL again and again, at random moments of a client's work
// (fault-workload.ts). After each: the stored data are checked as a copy (`dke verify`), the server
// starts again on them, and everything that it had acknowledged must hold.
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../server/app/config/config.ts';
import { verifyOffline } from '../../server/app/host/offline.ts';
import { openWorkload } from './fault-workload.ts';
import { programAt } from './program.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';

/** The program of this run, or the output of `npm run build`, unless another build is named. */
export const builtServer =
  process.env.DKE_BUILT_SERVER ?? programAt('server/app/process.js', 'dist/server/app/process.js');

export interface KillReport {
  readonly kills: number;
  readonly acknowledged: Readonly<Record<string, number>>;
  /** Empty: nothing acknowledged was lost, nothing destroyed came back, nothing is half done. */
  readonly findings: readonly string[];
  readonly lastVerification: object;
}

/** `dke verify` on a copy of a server's folder. */
export const verifyCopy = async (folder: string): Promise<Awaited<ReturnType<typeof verifyOffline>>> => {
  const copy = mkdtempSync(join(tmpdir(), 'dke-copy-'));
  try {
    const data = join(folder, 'dke-data');
    for (const name of readdirSync(data)) {
      // The lock is the running server's; folders hold files of their own, such as snapshots.
      if (name === 'lock' || !statSync(join(data, name)).isFile()) continue;
      copyFileSync(join(data, name), join(copy, name));
      chmodSync(join(copy, name), statSync(join(data, name)).mode & 0o777);
    }
    const declared = loadConfig(join(folder, 'dke.toml'), folder);
    const config = {
      ...declared,
      dataDirectory: copy,
      memory: { ...declared.memory, allowUnlocked: true },
      root: { ...declared.root, path: join(copy, 'root.key') },
    };
    return await verifyOffline(config, () => Promise.resolve(undefined));
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
};

export const killServer = async (options: {
  readonly kills: number;
  readonly seed: number;
  readonly rotations?: boolean;
  readonly tell?: (line: string) => void;
}): Promise<KillReport> => {
  const { kills, seed, rotations = false, tell = () => undefined } = options;
  const folder = mkdtempSync(join(tmpdir(), 'dke-killed-'));
  const environment = { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(folder, 'code') };
  const toml = '[erasure]\ngather_ms = 10\n[snapshots]\nrestore_second_person = false\n';
  const first = await startServerProcess({ folder, toml, program: [builtServer], environment });
  const { adminToken: token, port } = first;
  const place: { server: ServerProcess } = { server: first };
  const findings: string[] = [];
  let lastVerification: object = {};
  try {
    const workload = await openWorkload(place, token, { rotations, seed });
    let state = seed >>> 0;
    const acknowledged = (): number => Object.values(workload.acknowledged()).reduce((sum, count) => sum + count, 0);
    for (let kill = 1; kill <= kills && findings.length === 0; kill += 1) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      const working = workload.run(() => false);
      const { child } = place.server;
      // Counted by what was acknowledged, so that a slow machine gets as far; a few milliseconds
      // more, so that any moment is struck.
      const enough = acknowledged() + 1 + (state % 8);
      const timer = setInterval(() => {
        if (acknowledged() < enough) return;
        clearInterval(timer);
        setTimeout(() => child.kill('SIGKILL'), (state >>> 8) % 50);
      }, 5);
      const exited = once(child, 'exit');
      // A fault that the workload finds itself ends the server, too.
      await working.catch((error: unknown) => findings.push(String(error)));
      clearInterval(timer);
      child.kill('SIGKILL');
      await exited;
      const { findings: stored, ...counts } = await verifyCopy(folder);
      lastVerification = counts;
      findings.push(...stored);
      place.server = await startServerProcess({ folder, toml, program: [builtServer], environment, port });
      findings.push(...(await workload.check(kill % 25 === 0 || kill === kills)));
      if (kill % 10 === 0) tell(`${kill} kills: ${JSON.stringify({ ...workload.acknowledged(), ...counts })}`);
    }
    return { kills, acknowledged: workload.acknowledged(), findings, lastVerification };
  } finally {
    await place.server.stop('SIGKILL');
    if (findings.length === 0) rmSync(folder, { recursive: true, force: true });
    else tell(`kept: ${folder}`);
  }
};
