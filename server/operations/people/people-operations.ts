// What the service can do with people, as fronts call it. Rules as in operations/index.ts.

import type { OriginRates } from '../../base/origin-rates.ts';
import type { Grant, Right, Role as RoleName } from '../../domain/access.ts';
import type { Actor, TenantActor } from '../../domain/actor.ts';
import type { ApiToken } from '../../domain/api-token.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { SignInMethod, SignInStep } from '../../domain/sign-in.ts';
import type { InvitationDelivery, UserView } from '../../domain/user.ts';
import type { NewGrant } from '../access/access-operations.ts';

/** An invitation: its bearer chooses the user's password. Shown only once. */
export interface Invitation {
  readonly token: string;
  readonly expiresAt: number;
  /** Where the person opens it. The token is behind the `#`, which browsers do not send. */
  readonly url: string;
}

export interface DeliveredInvitation {
  /** Null: by mail only, or there is none. */
  readonly invitation: Invitation | null;
  /** Null: not by mail. `failure`: why it was not sent; the user can be invited again. */
  readonly mailed: { readonly to: string; readonly failure: string | null } | null;
}

export interface UserChange {
  readonly displayName: string;
  readonly email: string | null;
  readonly grants: readonly NewGrant[];
  readonly subject: string | null;
  readonly mustChangePassword: boolean;
}

export interface UserOperations {
  /**
   * Without a subject at the OpenID provider the person gets an invitation to choose a password.
   */
  create(
    actor: TenantActor,
    own: readonly Grant[],
    input: { readonly name: string } & { readonly [F in keyof UserChange]?: UserChange[F] | undefined } & {
      readonly grants: readonly NewGrant[];
      readonly deliver?: InvitationDelivery | undefined;
    },
  ): Promise<{ readonly user: UserView } & DeliveredInvitation>;
  list(actor: TenantActor, query: PageRequest): Promise<Page<UserView>>;
  get(actor: TenantActor, id: string): Promise<UserView>;
  /** A change of roles ends the user's sessions. Users cannot change their own roles. */
  update(actor: TenantActor, own: readonly Grant[], id: string, change: UserChange): Promise<UserView>;
  enable(actor: TenantActor, own: readonly Grant[], id: string): Promise<UserView>;
  /** Ends their sessions; tokens that they created are not valid while they are disabled. */
  disable(actor: TenantActor, own: readonly Grant[], id: string): Promise<UserView>;
  unlock(actor: TenantActor, own: readonly Grant[], id: string): Promise<UserView>;
  /**
   * Removes the password and ends sessions; the user chooses a new one with the invitation.
   * `revokeTokens`: their own API tokens, too.
   */
  resetPassword(
    actor: TenantActor,
    own: readonly Grant[],
    id: string,
    options?: {
      readonly revokeTokens?: boolean | undefined;
      readonly deliver?: InvitationDelivery | undefined;
    },
  ): Promise<{ readonly user: UserView } & DeliveredInvitation>;
  /**
   * For a user who has lost their factors: all are removed, with the recovery codes, and sessions
   * end.
   */
  removeFactors(actor: TenantActor, own: readonly Grant[], id: string): Promise<UserView>;
  delete(actor: TenantActor, own: readonly Grant[], id: string): Promise<UserView>;
  permissions(
    actor: TenantActor,
    id: string,
  ): Promise<{ readonly grants: readonly Grant[]; readonly rights: readonly Right[] }>;
  /** Ends every session of theirs; answers how many. */
  endSessions(actor: TenantActor, own: readonly Grant[], id: string): Promise<number>;
}

/** A session as people see one. */
export interface SessionView {
  readonly id: string;
  readonly holder: { readonly kind: 'user' | 'token'; readonly id: string; readonly name: string };
  readonly method: SignInMethod;
  readonly proved: 1 | 2;
  readonly createdAt: number;
  readonly usedAt: number;
  readonly expiresAt: number;
  readonly peer: string | null;
  readonly agent: string | null;
}

/** A user who acts through a session. */
export interface SessionCaller {
  readonly actor: Actor;
  /** The user's grants; empty while a step of the sign-in is missing. */
  readonly grants: readonly Grant[];
  readonly sessionId: string;
  readonly expiresAt: number;
  /** What the session still needs; null: nothing. */
  readonly missing: SignInStep | null;
}

/** `value`: for the cookie, and for nothing else. */
export interface StartedSession extends SessionCaller {
  readonly value: string;
}

/** From where a sign-in comes. */
export interface SignInOrigin {
  readonly requestId: string;
  readonly peer: string | null;
  readonly agent: string | null;
  /** The session that the browser had before, which ends. */
  readonly before: string | undefined;
}

/** How a session is looked up for a request. */
export interface SessionLook {
  /** A person has asked, so that the session lasts longer; true when absent. */
  readonly isUse?: boolean;
  /** Decided by what the store has now: nothing that was read before is believed. */
  readonly isFresh?: boolean;
}

export interface SessionOperations {
  /**
   * 'unauthenticated' in one message for whatever is not valid. What was read is believed for a
   * moment (`callerBelievedMs`).
   */
  authenticate(value: string, requestId: string, peer: string | null, how?: SessionLook): Promise<SessionCaller>;
  /** Exchanges an API token for a session. */
  startByToken(token: string, from: SignInOrigin): Promise<StartedSession>;
  signOut(value: string, from: Pick<SignInOrigin, 'requestId' | 'peer'>): Promise<void>;
  /** Newest first. */
  list(actor: TenantActor, query: PageRequest & { readonly userId?: string | undefined }): Promise<Page<SessionView>>;
  /**
   * 'not-found' for one that ended; 'forbidden' when its holder may do more than could be given
   * with `own`, unless it is the caller's.
   */
  end(actor: TenantActor, own: readonly Grant[], id: string): Promise<SessionView>;
  /** A new key for the values of sessions: every session ends. Audited. */
  rotateKey(actor: Actor): Promise<{ readonly sessionsEnded: number }>;
}

export interface PasskeyOperations {
  /** Options for the browser's authenticator. */
  beginNew(caller: SessionCaller): Promise<object>;
  /** The session is complete then, and has a new value. */
  finishNew(caller: SessionCaller, name: string, answer: object, from: SignInOrigin): Promise<StartedSession>;
  /** For a caller who has not identified themselves. */
  begin(): Promise<object>;
  finish(answer: object, from: SignInOrigin): Promise<StartedSession>;
  /** Options for a passkey as the second factor of the session. */
  beginSecond(caller: SessionCaller): Promise<object>;
}

export interface OpenIdOperations {
  /** The provider's name for people; null: there is none. */
  label(): string | null;
  /**
   * `url`: where the browser goes; `binding`: for a cookie, so that the same browser comes back.
   */
  begin(): Promise<{ readonly url: string; readonly binding: string }>;
  /** `search`: the query with which it came back. */
  finish(search: string, binding: string | undefined, from: SignInOrigin): Promise<StartedSession>;
}

export interface SignInOperations extends OriginRates {
  /**
   * Takes the password: it is wiped here. 'unauthenticated' in one message; 'rate-limited' says
   * until when.
   */
  byPassword(name: string, password: Buffer, from: SignInOrigin): Promise<StartedSession>;
  /** 'unauthenticated' for a code that is not right, or was used. */
  secondFactor(
    caller: SessionCaller,
    given: { readonly code: Uint8Array } | { readonly recoveryCode: Uint8Array } | { readonly passkey: object },
    from: SignInOrigin,
  ): Promise<StartedSession>;
  /** Whether passkeys can be used at this address. */
  hasPasskeys(): boolean;
  /** Takes the password, which becomes the user's. */
  redeem(invitation: string, password: Buffer, from: SignInOrigin): Promise<StartedSession>;
}

export interface FactorOperations {
  /**
   * A new secret for one-time passwords; it counts once it is confirmed. `secret`: Base32, wiped by
   * the caller after it was sent.
   */
  begin(
    caller: SessionCaller,
    name: string,
  ): Promise<{ readonly id: string; readonly account: string; readonly secret: Buffer }>;
  /** Confirms the secret with its first code. The session is complete then, and has a new value. */
  confirm(caller: SessionCaller, id: string, code: Uint8Array, from: SignInOrigin): Promise<StartedSession>;
  /**
   * Each is valid once, in the place of a second factor. Earlier codes stop working. The caller
   * wipes them.
   */
  makeRecoveryCodes(caller: SessionCaller): Promise<readonly Buffer[]>;
  /** The last one stays where the user's roles need one: 'conflict'. */
  remove(caller: SessionCaller, id: string): Promise<UserView>;
}

export interface ProfileOperations {
  get(caller: SessionCaller): Promise<UserView>;
  /** Takes both. Every other session of the user ends, and this one gets a new id. */
  changePassword(
    caller: SessionCaller,
    current: Buffer | undefined,
    next: Buffer,
    from: SignInOrigin,
  ): Promise<StartedSession>;
  /**
   * A token that does what these roles of the user do, as long as the user may; it is the user who
   * acts by it.
   */
  createToken(
    caller: SessionCaller,
    input: { readonly name: string; readonly expiresAt: number; readonly grants: readonly NewGrant[] | undefined },
  ): Promise<{ readonly record: ApiToken; readonly token: string }>;
  /** The API tokens that the user created for themselves. */
  tokens(caller: SessionCaller, query: PageRequest): Promise<Page<ApiToken>>;
  /** 'not-found' for a token that is not the user's own. */
  revokeToken(caller: SessionCaller, id: string): Promise<ApiToken>;
  sessions(caller: SessionCaller, query: PageRequest): Promise<Page<SessionView>>;
  endSession(caller: SessionCaller, id: string): Promise<SessionView>;
  /** All but the caller's; answers how many. */
  endOtherSessions(caller: SessionCaller): Promise<number>;
}

/** What a command asks for in the browser of a person. `host` and `roles` are its own words. */
export interface DeviceRequest {
  readonly id: string;
  readonly host: string;
  readonly peer: string | null;
  readonly requestedAt: number;
  readonly expiresAt: number;
  /** Null: all that the person has. */
  readonly roles: readonly RoleName[] | null;
  readonly hours: number;
}

export interface DeviceAnswer {
  readonly state: 'pending' | 'slow-down' | 'refused' | 'expired' | 'issued';
  readonly intervalSeconds: number;
  readonly issued: { readonly record: ApiToken; readonly token: string; readonly user: string } | null;
}

/** `admit` counts the questions of commands that wait. */
export interface DeviceSignInOperations extends OriginRates {
  start(
    asked: {
      readonly host: string;
      readonly roles?: readonly RoleName[] | undefined;
      readonly hours?: number | undefined;
    },
    from: SignInOrigin,
  ): Promise<{
    readonly deviceCode: string;
    readonly userCode: string;
    readonly url: string;
    readonly completeUrl: string;
    readonly expiresAt: number;
    readonly intervalSeconds: number;
  }>;
  /** The token once, to the first question after the approval. */
  poll(deviceCode: string, from: SignInOrigin): Promise<DeviceAnswer>;
  /** 'not-found', in one text, for each code that cannot be decided. */
  find(caller: SessionCaller, userCode: string, from: SignInOrigin): Promise<DeviceRequest>;
  /**
   * 'forbidden' for a sign-in that is not recent; 'validation' for roles that the person does not
   * have.
   */
  approve(
    caller: SessionCaller,
    userCode: string,
    chosen: { readonly hours: number; readonly grants?: readonly NewGrant[] | undefined },
    from: SignInOrigin,
  ): Promise<DeviceRequest>;
  refuse(caller: SessionCaller, userCode: string, from: SignInOrigin): Promise<DeviceRequest>;
  /** Revokes a user's token by its value; does nothing for every other value. */
  end(token: string, from: SignInOrigin): Promise<void>;
}

export interface PeopleOperations {
  readonly users: UserOperations;
  readonly sessions: SessionOperations;
  readonly signIn: SignInOperations;
  readonly profile: ProfileOperations;
  readonly factors: FactorOperations;
  readonly passkeys: PasskeyOperations;
  readonly openId: OpenIdOperations;
  readonly deviceSignIn: DeviceSignInOperations;
}
