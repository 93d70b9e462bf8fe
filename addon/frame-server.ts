// The core's frame server as JavaScript sees it: the framing of a unix socket, and the calls that
// it repeats without JavaScript.
import type { CipherParameters, Direction, KeyRef, MacParameters } from './core-types.ts';

export interface FrameServerOptions {
  /** Path of the unix socket to make; or `fd`, an already listening socket (systemd). */
  readonly path?: string;
  readonly fd?: number;
  /** Mode of the socket file, for example 0o600. */
  readonly mode?: number;
  /**
   * Microseconds of yield-spinning before the loop sleeps, until `setSpin` says otherwise of a
   * connection; 0 = off.
   */
  readonly spinMicroseconds: number;
  /**
   * Largest sum of a frame's options and body, and largest reply, in bytes. A longer request closes
   * the connection.
   */
  readonly maxFrame: number;
  readonly maxConnections: number;
  /**
   * A peer that does not say its version byte, or takes nothing of the output that waits for it,
   * for this long is disconnected. Default 30 000; 0 = never.
   */
  readonly stallMilliseconds?: number;
  /**
   * A peer that is answered this version byte is offered a lane: memory shared with it, for the
   * time while calls flow. Absent: none is.
   */
  readonly laneVersion?: number;
  /**
   * A peer must be admitted (`admit`) within this time after it connects, or it is disconnected;
   * until then its frames have at most `admissionFrame` bytes. Absent or 0: every greeted peer is
   * admitted.
   */
  readonly admissionMilliseconds?: number;
  readonly admissionFrame?: number;
  /** For all connections of one user together; absent or 0: no limit. How many there may be, */
  readonly userConnections?: number;
  /**
   * and the bytes that the server keeps for them: frames that are not complete, and answers that
   * are not read.
   */
  readonly userBytes?: number;
}
export interface Peer {
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
  /** Its other groups. */
  readonly groups: readonly number[];
}
/**
 * Called inside `run`, on its thread. A handler that throws, or answers with something else than
 * its number, ends that run with the error after its connection was closed; the server stays
 * usable. No connection's work waits for another's: a peer that sends faster than it reads is not
 * read from until it has caught up.
 */
export interface FrameHandlers {
  /**
   * A peer has connected and sent its version byte. Return the version byte to answer with, or -1
   * to refuse.
   */
  connect(connection: number, peer: Peer, version: number): number;
  /**
   * One whole frame. `request` is a reused buffer: valid only during the call (it is wiped
   * afterwards); the frame body is request[0..length). Write the reply body into `reply` (reused,
   * maxFrame long) and return its length (> 0): it is sent with the same call code, and that much
   * of `reply` is wiped. Return 0 when the reply comes later through `send`. Return -1 to close the
   * connection. Neither buffer may be transferred to another thread.
   */
  frame(connection: number, callCode: number, request: Buffer, length: number, reply: Buffer): number;
  /**
   * The connection's user holds too much memory: a frame is thrown away, of whose body
   * request[0..length) has come; or the answer to a frame is, and then length is 0. Return the
   * length of the reply instead, 1 to 4096, or -1 to close. Absent: -1.
   */
  refuse?(connection: number, request: Buffer, length: number, reply: Buffer): number;
  /**
   * A connection was closed at once because its user has too many. Told once in ten seconds for
   * each user.
   */
  tooMany?(peer: Peer): void;
  /** Once for each connection that `connect` accepted, after either side closed it. */
  close(connection: number): void;
}
export interface IvUser {
  readonly owner: number;
  readonly identity: Uint8Array;
  readonly otherIdentity?: Uint8Array | undefined;
}
export interface ReplayInOnePiece {
  /**
   * What the operation's message begins with, before the data, and its answer, before the result.
   */
  readonly operation: Uint8Array;
  readonly operationAnswer: Uint8Array;
}
/** AES in ECB or CBC without padding: one Update with data, and a Final whose result is empty. */
export interface ReplayInParts {
  readonly update: Uint8Array;
  readonly updateAnswer: Uint8Array;
  readonly last: Uint8Array;
  readonly lastAnswer: Uint8Array;
}
/**
 * Messages, an Init and its operation, that a frame server answers without its handler
 * (addon/core/frames/replay_cache.h): the Init, whatever its IV, and the operation by the cipher or
 * the MAC under the key, in one piece or as an Update and a Final. Byte layouts:
 * provider/PROTOCOL.md.
 */
export type Replay = {
  /** Where the operation runs: one of each kind in a session. */
  readonly session: number;
  readonly kind: number;
  readonly init: Uint8Array;
  /** Where in `init` the IV is; a length of 0: there is none, and the Init must be the same. */
  readonly ivAt: number;
  readonly ivLength: number;
  readonly initAnswer: Uint8Array;
  /** Data that is not a multiple of so many bytes goes to the handler. */
  readonly unit: number;
  readonly key: KeyRef;
} & (
  | {
      readonly direction: Direction;
      readonly cipher: CipherParameters;
      /** For an encryption that uses its IV up: who has the key, and what it is known by there. */
      readonly usedIvs?: IvUser | undefined;
    }
  /** The first so many bytes of the MAC are given. */
  | { readonly mac: MacParameters; readonly macLength: number }
) &
  (ReplayInOnePiece | ReplayInParts);
export interface FrameServer {
  /** Process-wide number of this server, for `wakeFrameServer` from other threads. */
  readonly id: number;
  /**
   * Blocks this thread and serves frames, until `wakeFrameServer(id)` was called, or a `frame`
   * callback returned 0 and the batch of ready events is done (so that promises can settle).
   * Returns 'woken', 'pending', or 'stopped' after `stop`. 'woken' also means that this thread's
   * own event loop has work (a message, the end of the worker): let it run before the next call,
   * which will not sleep until that work is done. With `glance` serves what is there now and does
   * not block: for a caller that has work of its own left, which nothing wakes it for.
   */
  run(glance?: boolean): 'woken' | 'pending' | 'stopped';
  /**
   * Sends a late reply from the server's own thread. Unknown connections are ignored (the peer has
   * closed them). Copies what the socket does not take at once. False when the connection's user
   * holds too much (`userBytes`): send a reply of at most 4096 bytes instead.
   */
  send(connection: number, callCode: number, body: Uint8Array): boolean;
  /**
   * Whether the peer may stay: see `admissionMilliseconds`, which begin again with false. From the
   * server's own thread.
   */
  admit(connection: number, admitted: boolean): void;
  /**
   * From now on answers these messages of the connection itself, and again those of its slot, as
   * `resume` does. Everything else goes to `frame`, and before it each Init and Update that was
   * answered so and whose operation has not ended. Answers how often the replay was used that had
   * to make room for it, -1 when none had to. From the server's own thread, like the next three.
   */
  learn(connection: number, replay: Replay): number;
  /** The replays of a slot wait until `resume`, or until one of it is learned. */
  suspend(connection: number, session: number, kind: number): void;
  resume(connection: number, session: number, kind: number): void;
  /** Something has changed that an Init reads. */
  forget(connection: number): void;
  closeConnection(connection: number): void;
  /** Changes `spinMicroseconds` for the calls of a connection. From the server's own thread. */
  setSpin(connection: number, microseconds: number): void;
  /** Counters for health and tests. */
  statistics(): {
    readonly connections: number;
    readonly frames: number;
    /** How many of `frames` were answered by replays. */
    readonly replayedFrames: number;
    readonly laneMessages: number;
    readonly rejected: number;
    /** Frames and answers that were not accepted because their user has too much in memory. */
    readonly refusedFrames: number;
    readonly heldBytes: number;
  };
  /**
   * Closes the socket and every connection; the next `run` reports them to `close` and returns
   * 'stopped'.
   */
  stop(): void;
}
