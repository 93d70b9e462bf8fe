// What proves a person's identity outside of this service: authenticators by WebAuthn, and an
// OpenID provider.

import type { Role } from '../domain/access.ts';

/** What is kept of a passkey: nothing of it is secret. */
export interface PasskeyCredential {
  /** Base64url. */
  readonly id: string;
  /** COSE key, Base64url. */
  readonly publicKey: string;
  readonly transports: readonly string[];
}

/** Options for the browser (JSON of WebAuthn Level 3), and the challenge in them, Base64url. */
export interface PasskeyQuestion {
  readonly options: object;
  readonly challenge: string;
}

/** WebAuthn. Null from a `verify`: the answer is not valid. */
export interface Passkeys {
  /** Browsers require a name in the service's address, not an IP address. */
  available(): boolean;
  askForNew(
    user: { readonly id: string; readonly name: string; readonly displayName: string },
    known: readonly PasskeyCredential[],
  ): Promise<PasskeyQuestion>;
  verifyNew(
    response: object,
    challenge: string,
  ): Promise<{ readonly credential: PasskeyCredential; readonly counter: number } | null>;
  /** `known` empty: the person chooses which passkey, and with it who they are. */
  ask(known: readonly PasskeyCredential[]): Promise<PasskeyQuestion>;
  verify(
    response: object,
    challenge: string,
    credential: PasskeyCredential & { readonly counter: number },
  ): Promise<{ readonly counter: number } | null>;
}

/** Who came back from the OpenID provider. */
export interface OpenIdPerson {
  readonly subject: string;
  /** What they are called there: a user name to be, where it can be one. */
  readonly name: string | null;
  readonly displayName: string | null;
  readonly email: string | null;
  /**
   * The roles that their claim gives them; null: the provider gives none. `not-told`: the claim is
   * absent or no list, as with the many groups that some providers leave out. It takes nothing
   * away.
   */
  readonly roles: readonly Role[] | null | 'not-told';
  /** Whether the provider has asked for a second factor, as far as it is believed. */
  readonly secondFactor: boolean;
}

export interface IdentityProvider {
  /** For the button. */
  readonly label: string;
  /** Whether a claim of the provider gives its people their roles. */
  readonly managesRoles: boolean;
  /** How long API tokens of these people live at most, in milliseconds. */
  readonly tokenMs: number;
  /**
   * `data`: what `finish` needs, a secret of this sign-in. 'unavailable' when the provider does not
   * answer.
   */
  begin(redirectUri: string): Promise<{ readonly url: string; readonly state: string; readonly data: string }>;
  /**
   * `returned`: the whole address that the browser came back to. `peer`: each address has a share
   * of the sign-ins that wait for the provider. 'unauthenticated' for whatever is not valid.
   */
  finish(returned: URL, data: string, peer: string | null): Promise<OpenIdPerson>;
}
