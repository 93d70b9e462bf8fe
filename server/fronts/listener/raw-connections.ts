// The connections as the kernel has them, counted and ended by their raw sockets. What is above
// them (TLS, HTTP/2) may forget one: Node does so when a peer leaves in the middle of padded DATA,
// and the socket then stays open and counted permanently. So a raw socket ends with what is above
// it, or when nothing was received or sent on it for longer than any connection may be silent, when
// its peer does not read, and with the listener.
//
// Who can choose it: every peer that reaches the port. What proves it: a request that was
// authenticated (base/connection-proof.ts); until then a connection is a stranger's. How many:
// `most`, and a sixteenth of it that is being ended; of `most`, strangers have three quarters,
// callers together seven eighths, an address or its /64 an eighth, a /48 a quarter, and a caller a
// quarter. At a limit, the connection that has been idle longest gives way to the new one, among
// those that the limit is about: a stranger competes with strangers, and with its own address
// first; of strangers, the network that has the most gives way, and of callers, the tenant that has
// the most, however many callers it has, with its caller who has the most. A caller's connection
// with a request under way gives way after those without. What a new connection costs does not grow
// with their number. How long: `silentMs` without a byte in
// either direction; 60 s with bytes that the peer does not take. Behind a balancer that tells no
// addresses, all strangers are one.

import type { Server } from 'node:https';
import { Socket } from 'node:net';
import { canonicalAddress } from '../../base/address.ts';
import type { LimitName } from '../../base/limit-refusals.ts';
import { originsOf } from '../../base/origins.ts';

/** Connections of one kind, the longest idle one first. */
interface Group {
  readonly name: string;
  readonly idle: Set<Open>;
  /** Connections of callers with a request under way. */
  readonly busy: Set<Open>;
  /** Among which others it is the largest one or not. */
  readonly ranks: readonly Ranking[];
  /** The callers of a tenant. */
  readonly members: Ranking;
}
const sizeOf = ({ idle, busy }: Group): number => idle.size + busy.size;

/** Which group has the most: groups by their sizes, each of which changes by one. */
interface Ranking {
  moved(group: Group, before: number): void;
  largest(): Group | undefined;
}
const createRanking = (): Ranking => {
  const bySize = new Map<number, Set<Group>>();
  let most = 0;
  return {
    moved: (group, before) => {
      const size = sizeOf(group);
      bySize.get(before)?.delete(group);
      if (bySize.get(before)?.size === 0) bySize.delete(before);
      if (size > 0) {
        const same = bySize.get(size) ?? new Set();
        bySize.set(size, same.add(group));
      }
      most = Math.max(most, size);
      while (most > 0 && !bySize.has(most)) most -= 1;
    },
    largest: () => bySize.get(most)?.values().next().value,
  };
};

interface Open {
  readonly socket: Socket;
  address: string | null;
  caller: string | undefined;
  /** Requests under way. */
  uses: number;
  groups: readonly Group[];
  /** Ends what is above it in its own way, where there is one. */
  end: (() => void) | undefined;
  isLeaving: boolean;
  bytes: number;
  movedAt: number;
  /** While bytes wait for the peer: how many it had taken when the count began. */
  unread: { since: number; taken: number } | undefined;
}

export interface RawConnection {
  /** Ends the raw socket, whatever has become of the rest. */
  destroy(): void;
  /** The connection is a caller's; null: of no tenant. */
  prove(caller: string, tenantId: string | null): void;
  /** A request on it begins; the answer tells of its end. */
  use(): () => void;
  /** How it gives way: HTTP/2 says so before. */
  endWith(end: () => void): void;
  /** Called when the raw socket has closed, which what is above it may not notice. */
  onClose(closed: () => void): void;
}

export interface RawConnections {
  /** What is below this one; undefined where Node does not say it. */
  of(over: Socket): RawConnection | undefined;
  /** A balancer has named the peer; null: the connection is its own. */
  isFrom(socket: Socket, peer: string | null): void;
  /**
   * Looks which of them have moved, and ends those that are silent or unread for too long; every
   * few seconds on its own.
   */
  sweep(): void;
  /** Ends all of them. */
  destroy(): void;
  stop(): void;
}

export interface RawConnectionOptions {
  readonly most: number;
  readonly silentMs: number;
  readonly refused: (limit: LimitName, address: string | null) => void;
  /** Peers that will name another one. */
  readonly isBalancer: (address: string | undefined) => boolean;
  readonly now?: () => number;
}

const sweepMs = 5_000;
/** How long a peer may leave what was sent to it, and how much it has to take in that time. */
const unreadMs = 60_000;
const leastTaken = 65_536;
const lingerMs = 1_000;
/**
 * The lowest limit of an address, a network or a caller, for a small `most`: each has room for the
 * connections of a browser.
 */
const fewest = 16;

/**
 * What a TLS socket of a server is on. Not found by the addresses: a peer that is gone no longer
 * has them. Where Node does not say it, the sweep ends the socket.
 */
const under = (over: Socket): unknown => (over as { readonly _parent?: unknown })._parent;

/** Bytes that the kernel has not taken, because the peer does not read. */
const waitingBytes = (socket: Socket): number =>
  (socket as { readonly _handle?: { readonly writeQueueSize?: number } | null })._handle?.writeQueueSize ?? 0;

const limitsOf = (most: number) => ({
  strangers: Math.ceil((most * 3) / 4),
  callers: Math.ceil((most * 7) / 8),
  leaving: Math.ceil(most / 16),
  address: Math.max(fewest, Math.ceil(most / 8)),
  network: Math.max(fewest, Math.ceil(most / 4)),
  caller: Math.max(fewest, Math.ceil(most / 4)),
});

const newGroup = (name: string, ranks: readonly Ranking[] = []): Group => ({
  ...{ name, ranks },
  ...{ idle: new Set(), busy: new Set(), members: createRanking() },
});
const setOf = ({ idle, busy }: Group, { caller, uses }: Open): Set<Open> =>
  caller !== undefined && uses > 0 ? busy : idle;
const oldest = ({ idle, busy }: Group): Open | undefined => idle.values().next().value ?? busy.values().next().value;
/**
 * Puts a connection that was used behind the others of its groups: it is the last one to give way.
 */
const toTheBack = (each: Open): void => {
  for (const group of each.groups) {
    const set = setOf(group, each);
    if (set.delete(each)) set.add(each);
  }
};
/** A request on it begins (1), or has ended (-1). */
const use = (each: Open, by: 1 | -1): void => {
  const before = each.groups.map((group) => setOf(group, each));
  each.uses += by;
  each.groups.forEach((group, at) => {
    const set = setOf(group, each);
    if (set !== before[at] && before[at]?.delete(each) === true) set.add(each);
  });
};

/** Who has which places. */
const createPlaces = ({ most, refused }: RawConnectionOptions) => {
  const limits = limitsOf(most);
  const groups = new Map<string, Group>();
  const strangers = newGroup('strangers');
  const callers = newGroup('callers');
  /** Ranks of the origins of strangers that are in no larger one, and of tenants. */
  const ofOrigins = createRanking();
  const ofTenants = createRanking();
  /** How many connections have been told to end and are still open. */
  let leaving = 0;
  const count = (): number => sizeOf(strangers) + sizeOf(callers);

  const groupOf = (name: string, ranks: readonly Ranking[] = []): Group => {
    let group = groups.get(name);
    if (group === undefined) {
      group = newGroup(name, ranks);
      groups.set(name, group);
    }
    return group;
  };
  const enter = (each: Open, into: readonly Group[]): void => {
    each.groups = into;
    for (const group of into) {
      const before = sizeOf(group);
      setOf(group, each).add(each);
      for (const rank of group.ranks) rank.moved(group, before);
    }
  };
  const leave = (each: Open): void => {
    for (const group of each.groups) {
      const before = sizeOf(group);
      setOf(group, each).delete(each);
      for (const rank of group.ranks) rank.moved(group, before);
      if (sizeOf(group) === 0) groups.delete(group.name);
    }
    each.groups = [];
  };
  const giveWay = (each: Open, limit: LimitName): void => {
    leave(each);
    each.isLeaving = true;
    refused(limit, each.address);
    const { socket, end } = each;
    // Only so many are ended in their own way, which takes them a moment.
    if (end === undefined || leaving >= limits.leaving) {
      socket.destroy();
      return;
    }
    leaving += 1;
    const timer = setTimeout(() => socket.destroy(), lingerMs);
    socket.once('close', () => {
      leaving -= 1;
      clearTimeout(timer);
    });
    end();
  };
  /** Before the groups of a new one are looked up: who gives way may be the last one of a group. */
  const makeRoom = (name: string, most: number, limit: LimitName): void => {
    const group = groups.get(name);
    const first = group === undefined || sizeOf(group) < most ? undefined : oldest(group);
    if (first !== undefined) giveWay(first, limit);
  };
  /** The oldest of the network that has the most. */
  const oldestStranger = (): Open | undefined => oldest(ofOrigins.largest() ?? strangers);
  /** The oldest of the tenant that has the most, and there of the caller who has. */
  const oldestCaller = (): Open | undefined => {
    const tenant = ofTenants.largest();
    if (tenant === undefined || sizeOf(tenant) === 1) return oldest(callers);
    const caller = tenant.members.largest();
    return oldest(caller === undefined || sizeOf(caller) === 1 ? tenant : caller);
  };

  return {
    ...{ leave, toTheBack, use },
    /** False: there is no place. */
    admit: (each: Open): boolean => {
      if (sizeOf(strangers) >= limits.strangers || count() >= most) {
        const first = oldestStranger();
        if (first === undefined) {
          refused('connections', each.address);
          return false;
        }
        giveWay(first, 'connections');
      }
      enter(each, [strangers]);
      return true;
    },
    /** From now on the limits of its address are about it. */
    settle: (each: Open): void => {
      const origins = originsOf(each.address);
      for (const [kind, text] of origins) makeRoom(`${kind} ${text}`, limits[kind], `connections-of-${kind}`);
      const found = origins.map(([kind, text], at, { length }) =>
        groupOf(`${kind} ${text}`, at === length - 1 ? [ofOrigins] : []),
      );
      enter(each, [strangers, ...found]);
    },
    prove: (each: Open, caller: string, tenantId: string | null): void => {
      if (each.isLeaving || each.caller !== undefined) return;
      leave(each);
      each.caller = caller;
      const name = `caller ${tenantId} ${caller}`;
      makeRoom(name, limits.caller, 'connections-of-caller');
      // A tenant or caller that has few finds a place, also while others use theirs.
      const first = sizeOf(callers) < limits.callers ? undefined : oldestCaller();
      if (first !== undefined) giveWay(first, 'connections-of-caller');
      const tenant = groupOf(`tenant ${tenantId}`, [ofTenants]);
      enter(each, [callers, tenant, groupOf(name, [tenant.members])]);
    },
  };
};

export const watchRawConnections = (server: Server, options: RawConnectionOptions): RawConnections => {
  const { silentMs, refused, isBalancer, now = () => performance.now() } = options;
  const open = new Map<Socket, Open>();
  const places = createPlaces(options);
  const begin = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const peer = socket.remoteAddress;
    const address = peer === undefined ? null : canonicalAddress(peer);
    const each: Open = {
      ...{ socket, address, caller: undefined, uses: 0, groups: [], end: undefined, isLeaving: false },
      ...{ bytes: 0, movedAt: now(), unread: undefined },
    };
    if (!places.admit(each)) {
      socket.destroy();
      return;
    }
    open.set(socket, each);
    socket.once('close', () => {
      open.delete(socket);
      places.leave(each);
    });
    if (!isBalancer(peer)) places.settle(each);
    for (const listener of begin) listener.call(server, socket);
  });

  const isUnread = (each: Open): boolean => {
    const waiting = waitingBytes(each.socket);
    if (waiting === 0) {
      each.unread = undefined;
      return false;
    }
    const taken = each.socket.bytesWritten - waiting;
    each.unread ??= { since: now(), taken };
    if (now() - each.unread.since < unreadMs) return false;
    if (taken - each.unread.taken < leastTaken) return true;
    each.unread = { since: now(), taken };
    return false;
  };
  const sweep = (): void => {
    for (const each of open.values()) {
      const bytes = each.socket.bytesRead + each.socket.bytesWritten;
      if (bytes !== each.bytes) {
        Object.assign(each, { bytes, movedAt: now() });
        places.toTheBack(each);
      } else if (now() - each.movedAt > silentMs) each.socket.destroy();
      if (!isUnread(each)) continue;
      refused('unread-answer', each.address);
      each.socket.destroy();
    }
  };
  const timer = setInterval(sweep, sweepMs).unref();
  return {
    of: (over) => {
      const socket = under(over);
      const each = socket instanceof Socket ? open.get(socket) : undefined;
      if (each === undefined) return undefined;
      return {
        destroy: () => void each.socket.destroy(),
        prove: (caller, tenantId) => places.prove(each, caller, tenantId),
        use: () => {
          places.use(each, 1);
          return () => places.use(each, -1);
        },
        endWith: (end) => {
          each.end = end;
        },
        onClose: (closed) => void each.socket.once('close', closed),
      };
    },
    isFrom: (socket, peer) => {
      const each = open.get(socket);
      if (each === undefined || each.isLeaving || peer === null) return;
      each.address = canonicalAddress(peer);
      places.leave(each);
      places.settle(each);
    },
    sweep,
    destroy: () => {
      for (const { socket } of open.values()) socket.destroy();
    },
    stop: () => clearInterval(timer),
  };
};
