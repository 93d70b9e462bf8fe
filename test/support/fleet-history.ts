// A random history of a fleet: changes through any node, keys used at every node all the time, and
// in the meantime nodes that stop or die, connections to the database that are cut, late or lost,
// clocks of nodes and of the database that jump, and a failover. A model of what was acknowledged
// says what must not happen: a use after an acknowledgement, a change that is lost or applied
// twice, two audit logs, a key that no longer opens.
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Endpoint } from '../../server/contract/api/endpoints-routes.ts';
import { openDatabaseRelay } from './database-relay.ts';
import { type FleetMember, FleetOver, startFleet, untilActive } from './fleet.ts';
import { until } from './host.ts';
import type { PostgresServer } from './postgresql.ts';
import { chance } from './property.ts';
import { quarantineCodeOf } from './server-process.ts';
import { shiftedClock } from './shifted-clock.ts';
import { createXksEndpoint, type XksEndpoint } from './xks-call.ts';
import { callXks, requestMetadata } from './xks-client.ts';

export type Failover = 'none' | 'synchronous' | 'asynchronous' | 'unfenced';

export interface HistoryOptions {
  readonly seed: number;
  readonly nodes: number;
  readonly steps: number;
  readonly failover: Failover;
  /**
   * Gets what was done, for a person who reads of a violation or of a history that does not end.
   */
  readonly events: string[];
  /** Ends the history where it is, with its servers and databases. */
  readonly broken?: AbortSignal;
}

export interface History {
  readonly violations: readonly string[];
  /** Uses that were answered. */
  readonly uses: number;
  readonly acknowledged: number;
}

/** A change that takes a key away, and was acknowledged: who may still use it, and until when. */
interface Acknowledged {
  readonly at: number;
  readonly pending: readonly string[];
  readonly until: number | null;
}

interface Watched {
  readonly name: string;
  readonly call: XksEndpoint;
  readonly sealed: object;
  readonly plaintext: string;
  known: 'enabled' | 'disabled' | undefined;
  disabled: Acknowledged[];
  /** How often it was enabled, or may have been. */
  enables: number;
}

/** Rejects when the signal says so; never without one. */
const aborted = (signal: AbortSignal | undefined): Promise<never> =>
  new Promise((_, reject) => {
    const fail = (): void => reject(new Error(`broken off: ${String(signal?.reason)}`));
    if (signal?.aborted === true) fail();
    signal?.addEventListener('abort', fail, { once: true });
  });

/** Clocks jump by so much, either way: the cloud's signatures allow for five minutes. */
const [leastJumpMs, mostJumpMs] = [10_000, 200_000];

/**
 * Pause between two uses at a node, and no less than the use took: each takes a millisecond of this
 * process, which also relays what the nodes ask the database, and of the node. A key that was just
 * disabled is used everywhere at once instead of more often, so many times.
 */
const betweenUsesMs = 50;
const usesOfDisabled = 3;

const toml = '[erasure]\ngather_ms = 20\n[audit]\nsinks = [{ name = "file", type = "file", path = "audit.ndjson" }]\n';

export const runHistory = async (options: HistoryOptions): Promise<History> => {
  const { seed, nodes, steps, failover, events, broken } = options;
  const random = chance(seed);
  // Apart from the rest, so that a seed's other events stay as they are.
  const randomOfClocks = chance(seed + 1_000_003);
  const randomOfRestarts = chance(seed + 2_000_003);
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  const between = (from: number, to: number): number => Math.round(from + random() * (to - from));
  const began = performance.now();
  const violations: string[] = [];
  const log = (what: string): void => {
    events.push(`${Math.round(performance.now() - began)} ms: ${what}`);
  };
  const violate = (what: string): void => {
    log(`VIOLATION: ${what}`);
    violations.push(what);
  };

  const names = ['one', 'two', 'three'].slice(0, nodes);
  const clockFolder = mkdtempSync(join(tmpdir(), 'dke-clocks-'));
  chmodSync(clockFolder, 0o755);
  const clocks = new Map(['database', ...names].map((name) => [name, shiftedClock(clockFolder, name)]));
  /** How far ahead each clock is. */
  const ahead = new Map<string, number>();
  const fleet = await startFleet(names, {
    ...{ relay: true, toml, store: 'contact_seconds = 5\n' },
    databaseEnvironment: clocks.get('database')?.environment ?? {},
    environmentOf: (name) => clocks.get(name)?.environment ?? {},
    ...(broken === undefined ? {} : { broken }),
  });
  const members = names.map((name) => fleet.member(name));
  const agent = new Agent({ keepAlive: true });
  const line = await openDatabaseRelay(fleet.postgres.socket);
  let standby: PostgresServer | undefined;
  let following: Promise<void> | undefined;
  let database = fleet.postgres;
  const ask = (sql: string): Promise<string> => database.ask('dke', sql);
  const healing = new Set<Promise<void>>();
  const busy = new Set<FleetMember>();
  let probing = true;
  const trying = new Set<Promise<void>>();
  let uses = 0;
  let acknowledged = 0;
  const watched: Watched[] = [];
  const created = new Map<string, 'made' | 'unknown'>();

  // --- uses --------------------------------------------------------------------------------------
  const use = (of: Watched, { server }: FleetMember) => {
    const { keyId } = of.call.endpoint;
    return callXks(
      { server, configuration: of.call.configuration },
      {
        target: `/keys/${keyId}/decrypt`,
        body: { requestMetadata: requestMetadata(), encryptionAlgorithm: 'AES_GCM', ...of.sealed },
        agent,
      },
    );
  };
  /** A key used at a node: what it must answer depends on what was acknowledged before. */
  const tryUse = async (of: Watched, member: FleetMember): Promise<void> => {
    const { enables } = of;
    const taken = [...of.disabled];
    const wall = Date.now();
    const answer = await use(of, member).catch(() => undefined);
    if (answer !== undefined) uses += 1;
    if (answer?.status !== 200) return;
    if (answer.body.plaintext !== of.plaintext) violate(`${member.name} answered another plaintext of ${of.name}`);
    const broken = taken.find(
      ({ pending, until: end }) => !(pending.includes(member.name) && (end === null || wall < end)),
    );
    if (of.enables === enables && broken !== undefined)
      violate(`${member.name} used ${of.name} after it was disabled (acknowledged ${JSON.stringify(broken)})`);
  };
  const probe = async (member: FleetMember): Promise<void> => {
    for (let at = 0; probing; at += 1) {
      const of = watched[at % watched.length];
      if (of === undefined) return;
      const asked = performance.now();
      await tryUse(of, member);
      await setTimeout(Math.max(betweenUsesMs, performance.now() - asked));
    }
  };
  /** At the moment of an acknowledgement: the steady uses of each node are at their own moments. */
  const tryEverywhere = (of: Watched): void => {
    const tryAt = async (member: FleetMember): Promise<void> => {
      // A node that stood still answers the first one only then, and may receive the change before
      // the next.
      for (let at = 0; at < usesOfDisabled; at += 1) await tryUse(of, member);
    };
    for (const member of members) {
      const tried = tryAt(member).finally(() => trying.delete(tried));
      trying.add(tried);
    }
  };

  const lastErrors = ({ server }: FleetMember): string => {
    const lines = server.log().split('\n');
    return lines
      .filter((line) => line.includes('"error"'))
      .slice(-5)
      .join('\n');
  };

  // --- changes -----------------------------------------------------------------------------------
  const change = async (of: Watched, member: FleetMember, action: 'enable' | 'disable'): Promise<void> => {
    const before = of.known;
    const clockBefore = ahead.get(member.name) ?? 0;
    of.known = undefined;
    if (action === 'enable') {
      of.enables += 1;
      of.disabled = [];
    }
    const answer = await member.api
      .send('POST', `/api/endpoints/${of.call.endpoint.id}/${action}`)
      .catch(() => undefined);
    log(`${action} ${of.name} at ${member.name}: ${answer?.status} ${answer?.status === 200 ? '' : answer?.text}`);
    if (answer?.status === 200) {
      acknowledged += 1;
      const { pendingNodes = [], pendingUntil = null } = JSON.parse(answer.text) as Endpoint & {
        readonly pendingNodes?: readonly string[];
        readonly pendingUntil?: string | null;
      };
      of.known = `${action}d`;
      if (action === 'disable') {
        of.disabled.push({
          at: Math.round(performance.now() - began),
          pending: pendingNodes,
          // `pendingUntil` is by the clock of the answering node, which may have been set back to
          // the true time in the meantime.
          until:
            pendingUntil === null
              ? null
              : Date.parse(pendingUntil) - Math.min(clockBefore, ahead.get(member.name) ?? 0),
        });
        tryEverywhere(of);
      }
    } else if (answer?.text.includes('nothing was changed') === true) of.known = before;
    else if (answer !== undefined && answer.status !== 503)
      violate(`${action} was answered with ${answer.status}: ${lastErrors(member)}`);
  };
  /** A node that does not stand still, mostly: one that does keeps the next change waiting, too. */
  const anyMember = (): FleetMember => {
    const awake = members.filter((member) => !busy.has(member));
    return awake.length > 0 && random() < 0.9 ? pick(awake) : pick(members);
  };
  const create = async (): Promise<void> => {
    const name = `made ${created.size}`;
    created.set(name, 'unknown');
    for (let attempt = 0; attempt < 8; attempt += 1) {
      const member = anyMember();
      const answer = await member.api
        .send('POST', '/api/vaults', { name }, { 'idempotency-key': name.replace(' ', '-') })
        .catch(() => undefined);
      log(`create ${name} at ${member.name}: ${answer?.status} ${answer?.status === 201 ? '' : answer?.text}`);
      if (answer?.status === 201) {
        acknowledged += 1;
        created.set(name, 'made');
        return;
      }
      if (answer !== undefined && ![409, 503].includes(answer.status))
        violate(`a create was answered with ${answer.status}: ${lastErrors(member)}`);
      await setTimeout(50);
    }
  };
  /** Mostly takes away what can be used: that is what another node may not have received. */
  const anyChange = (): Promise<void> => {
    const enabled = watched.filter(({ known }) => known === 'enabled');
    if (enabled.length > 0 && random() < 0.7) return change(pick(enabled), anyMember(), 'disable');
    const of = pick(watched);
    return change(of, anyMember(), of.known !== 'disabled' || random() < 0.2 ? 'disable' : 'enable');
  };

  // --- faults ------------------------------------------------------------------------------------
  const heal = (what: string, ms: number, work: () => Promise<void> | void): void => {
    const healed = setTimeout(ms)
      .then(work)
      .then(() => log(`healed: ${what}`))
      .catch((error: unknown) => violate(`${what} was not healed: ${String(error)}`))
      .finally(() => healing.delete(healed));
    healing.add(healed);
  };
  const startAgain = (member: FleetMember): Promise<void> =>
    until(`${member.name} to start`, () =>
      member.start().then(
        () => true as const,
        (error: unknown) => {
          if (error instanceof FleetOver) throw error;
          return undefined;
        },
      ),
    ).then(() => undefined);
  /** A condition that selects the connections of one kind, of all nodes or of one. */
  const wordsOf = async (kind: string, member: FleetMember | undefined): Promise<string> => {
    const instance =
      member === undefined
        ? ''
        : await ask(
            `select right(application_name, 8) from pg_stat_activity join pg_locks using (pid) join nodes
               on objid::bigint = (hashtext(nodes.id)::bigint & 4294967295)
             where locktype = 'advisory' and nodes.name = '${member.name}' limit 1`,
          );
    return `dke ${kind} ${instance}`;
  };
  const fault = async (): Promise<void> => {
    const kind = pick(['stop', 'stop', 'kill', 'cut', 'cut', 'delay', 'swallow', 'swallow', 'swallow'] as const);
    if (kind === 'stop' || kind === 'kill') {
      // One at a time: what a fleet does without any node is known.
      if (busy.size > 0) return;
      const member = pick(members);
      busy.add(member);
      const ms = kind === 'stop' ? between(200, 7_000) : between(0, 500);
      log(`${kind} ${member.name} for ${ms} ms`);
      const { child } = member.server;
      if (kind === 'stop') child.kill('SIGSTOP');
      const ended = kind === 'kill' ? member.stop('SIGKILL') : undefined;
      heal(`${kind} ${member.name}`, ms, async () => {
        if (kind === 'stop') child.kill('SIGCONT');
        await ended;
        if (kind === 'kill') await startAgain(member);
        busy.delete(member);
      });
      return;
    }
    const which = await wordsOf(pick(['link', 'link', 'reader', 'writer']), random() < 0.8 ? pick(members) : undefined);
    const ms = between(100, 3_000);
    log(`${kind} ${which} for ${ms} ms`);
    if (kind === 'cut') fleet.relay.cut(which);
    if (kind === 'delay') {
      fleet.relay.delay(which, between(20, 400));
      heal(`${kind} ${which}`, ms, () => fleet.relay.delay(which, 0));
    }
    if (kind === 'swallow') {
      fleet.relay.swallow(which);
      heal(`${kind} ${which}`, ms, () => fleet.relay.cut(which));
    }
  };
  const jump = (): void => {
    // The standby has a clock of its own.
    const which = database === fleet.postgres ? [...clocks.keys()] : names;
    const name = which[Math.floor(randomOfClocks() * which.length)] ?? '';
    const far = leastJumpMs + randomOfClocks() * (mostJumpMs - leastJumpMs);
    const ms = Math.round((randomOfClocks() < 0.5 ? -far : far) / 1000) * 1000;
    const forMs = Math.round(200 + randomOfClocks() * 4_000);
    if (ahead.has(name)) return;
    const set = (to: number): void => {
      clocks.get(name)?.ahead(to);
      if (to === 0) ahead.delete(name);
      else ahead.set(name, to);
    };
    log(`the clock of ${name} jumps by ${ms} ms for ${forMs} ms`);
    set(ms);
    heal(`the clock of ${name}`, forMs, () => set(0));
  };
  const healAll = async (): Promise<void> => {
    while (healing.size > 0) await Promise.all(healing);
  };

  // --- a failover --------------------------------------------------------------------------------
  const isCaughtUp = async (): Promise<true | undefined> =>
    (await database.ask('postgres', 'select flush_lsn >= pg_current_wal_flush_lsn() from pg_stat_replication')) === 't'
      ? true
      : undefined;
  const failOver = async (): Promise<void> => {
    if (standby === undefined) return;
    await healAll();
    await until('the standby to catch up', isCaughtUp);
    const acknowledgedBefore = acknowledged;
    if (failover === 'asynchronous') {
      line.swallow();
      log('the standby lags');
      for (let at = 0; at < 3; at += 1) await anyChange();
    }
    if (failover !== 'unfenced') await database.stop('SIGQUIT');
    await standby.promote();
    const promoted = standby;
    await until('the promotion', async () =>
      (await promoted.ask('postgres', 'select pg_is_in_recovery()')) === 'f' ? true : undefined,
    );
    database = promoted;
    fleet.relay.moveTo(promoted.socket);
    fleet.relay.cut(failover === 'unfenced' ? 'dke link' : '');
    log(`the standby is the primary (${failover})`);
    await restartSome('after the failover');
    if (failover === 'asynchronous' && acknowledged > acknowledgedBefore) await confirmAll();
  };
  /**
   * Before any confirmation, each at a moment of its own: what a node must know of the failover is
   * on its disk.
   */
  const restartSome = async (when: string): Promise<void> => {
    for (const member of members) {
      const how = pick(['stays', 'restart', 'kill'] as const);
      await setTimeout(randomOfRestarts() * 1_500);
      if (how === 'stays') continue;
      log(`${how} ${member.name} ${when}`);
      await member.stop(how === 'kill' ? 'SIGKILL' : undefined);
      await startAgain(member);
    }
  };
  /** Every node has noticed lost changes, so every node must stop. */
  const confirmAll = async (): Promise<void> => {
    const findingOf = async ({ api }: Pick<FleetMember, 'api'>) =>
      (await api.call<{ finding: string | null }>('GET', '/api/quarantine').catch(() => undefined))?.finding;
    const allAreIn = async (): Promise<void> => {
      for (const member of members)
        await until(`the quarantine of ${member.name}`, async () =>
          (await findingOf(member)) == null ? undefined : true,
        );
    };
    await allAreIn();
    log('every node is in quarantine');
    if (randomOfRestarts() < 0.5) {
      await restartSome('in quarantine');
      await allAreIn();
    }
    for (const of of watched) {
      of.enables += 1;
      of.disabled = [];
      of.known = undefined;
    }
    for (const name of created.keys()) created.set(name, 'unknown');
    for (const { name, server, api } of members)
      await until(`the confirmation of ${name}`, async () => {
        const code = await quarantineCodeOf(server);
        const answer = await api.send('POST', '/api/quarantine/confirm', { code });
        log(`confirm ${name}: ${answer.status} ${answer.status === 200 ? '' : answer.text}`);
        // Slow or faulty, the database takes it another time.
        if (answer.status === 503) return undefined;
        // An earlier answer may have arrived late: then the quarantine has already ended.
        if (answer.status !== 200 && (await findingOf({ api })) !== null)
          throw new Error(`the confirmation of ${name} was answered with ${answer.status}: ${answer.text}`);
        return true;
      });
  };

  // --- what must be true at the end --------------------------------------------------------------
  /**
   * Records of all files of the sinks, also of those of a former log or of another history. A
   * number means something within one log only.
   */
  const sinkRecords = (): ReadonlyMap<string, ReadonlySet<string>> => {
    const found = new Map<string, Set<string>>();
    for (const { folder } of members)
      for (const file of readdirSync(folder).filter((name) => name.includes('audit.ndjson'))) {
        const [head = '', ...lines] = readFileSync(join(folder, file), 'utf8').split('\n');
        if (!head.startsWith('{"log":')) violate(`${file} of a sink does not name its log: ${head}`);
        for (const text of lines) {
          const sequence = /"sequence":(\d+)/.exec(text)?.[1];
          if (sequence === undefined) continue;
          const number = `${sequence} of ${head}`;
          found.set(number, (found.get(number) ?? new Set()).add(text));
        }
      }
    return found;
  };
  const settle = async (): Promise<void> => {
    await healAll();
    for (const { name, api } of members) {
      let last = '';
      await until(`${name} to be healthy`, async () => {
        last = await api.send('GET', '/health').then(({ text }) => text, String);
        return last === '{"status":"healthy"}' ? true : undefined;
      }).catch(async (error: unknown) => {
        const status = await api.send('GET', '/api/status').then(({ text }) => text, String);
        throw new Error(`${String(error)}: ${last}, ${status}`);
      });
    }
    for (const of of watched)
      for (const { name, api } of of.known === undefined ? [] : members) {
        const { state } = await api.call<Endpoint>('GET', `/api/endpoints/${of.call.endpoint.id}`);
        if (state !== of.known) violate(`${of.name} is ${state} at ${name}, and was acknowledged as ${of.known}`);
      }
    for (const [name, what] of created) {
      const count = Number(await ask(`select count(*) from vaults where name = '${name}'`));
      if (count > 1 || (count === 0 && what === 'made')) violate(`${name} (${what}) is there ${count} times`);
    }
    if ((await ask('select count(*) = max(sequence) - min(sequence) + 1 from audit_events')) !== 't')
      violate('the audit log has gaps');
    const records = sinkRecords();
    if (records.size === 0) violate('no sink has a record');
    for (const [number, texts] of records)
      if (texts.size > 1) violate(`the record ${number} was forwarded with two contents: ${[...texts].join(' and ')}`);
    for (const of of watched)
      await until(`${of.name} to be enabled`, async () => {
        await change(of, members[0] as FleetMember, 'enable');
        // Another answer, of a busy database for example, leaves what was.
        return of.known === 'enabled' ? true : undefined;
      });
    for (const of of watched)
      for (const member of members) {
        const { status, body } = await use(of, member);
        if (status !== 200 || body.plaintext !== of.plaintext)
          violate(`${of.name} does not open at ${member.name}: ${status} ${JSON.stringify(body)}`);
      }
  };

  const play = async (): Promise<void> => {
    const [first] = members;
    if (first === undefined) throw new Error('a fleet has a node');
    await untilActive(fleet, first, names);
    const watch = async (name: string): Promise<Watched> => {
      const call = await createXksEndpoint({ api: first.api, server: first.server }, name);
      const plaintext = Buffer.from(`the plaintext of ${name}`).toString('base64');
      const { body: sealed } = await call.encrypt(Buffer.from(plaintext, 'base64'));
      return { name, call, sealed, plaintext, known: 'enabled', disabled: [], enables: 0 };
    };
    const follow = async (): Promise<void> => {
      if (failover === 'none') return;
      standby = await fleet.postgres.standby({ name: 'second', from: line });
      if (failover !== 'synchronous') return;
      await fleet.postgres.ask('postgres', "alter system set synchronous_standby_names = 'second'");
      await fleet.postgres.ask('postgres', 'select pg_reload_conf()');
    };
    following = follow();
    const [, ...made] = await Promise.all([following, ...['a', 'b', 'c'].map(watch)]);
    watched.push(...made);
    const probes = members.map(probe);
    for (let step = 0; step < steps; step += 1) {
      broken?.throwIfAborted();
      if (step === Math.floor(steps / 2)) await failOver();
      if (random() < 0.5) await fault();
      if (randomOfClocks() < 0.15) jump();
      const kind = random();
      if (kind < 0.75) await anyChange();
      else if (kind < 0.95) await create();
      else {
        const answer = await anyMember()
          .api.send('POST', '/api/root/rotate', {})
          .catch(() => undefined);
        log(`rotate the root key: ${answer?.status}`);
      }
      await setTimeout(between(0, 100));
    }
    await settle();
    probing = false;
    await Promise.all([...probes, ...trying]);
  };
  try {
    await Promise.race([play(), aborted(broken)]);
  } catch (error) {
    violate(String(error));
    log(`the database printed:\n${database.printed().split('\n').slice(-30).join('\n')}`);
  } finally {
    probing = false;
    for (const { server } of members) server.child.kill('SIGCONT');
    await Promise.allSettled([following]);
    await Promise.allSettled(healing);
    agent.destroy();
    await fleet.end();
    await standby?.remove();
    await line.close();
    rmSync(clockFolder, { recursive: true, force: true });
  }
  return { violations, uses, acknowledged };
};
