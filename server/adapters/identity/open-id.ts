// OpenID Connect Core 1.0 over openid-client: the authorization code flow with PKCE (RFC 7636),
// state and nonce. The provider is looked up (discovery) at the first sign-in, so that the service
// starts without it.

import { isDeepStrictEqual } from 'node:util';
import type * as openid from 'openid-client';
import type { Agent } from 'undici';
import { LimitRefused } from '../../base/limit-refusals.ts';
import { dnsTimeout, lookupWithin } from '../../base/name-lookup.ts';
import { originsOf } from '../../base/origins.ts';
import { callOutside, readAnswer } from '../../base/outside.ts';
import { printable } from '../../base/printable.ts';
import { ServiceError } from '../../base/service-error.ts';
import { createShares } from '../../base/shares.ts';
import type { Role } from '../../domain/access.ts';
import type { IdentityProvider, OpenIdPerson } from '../../ports/identity.ts';
import type { Log } from '../../ports/log.ts';

export interface OpenIdOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Absent: a public client. Read at each look-up of the provider, so that it can be changed. */
  readonly clientSecret: (() => Promise<string>) | undefined;
  readonly label: string;
  readonly scopes: string;
  /** PEM, in addition to the public authorities' when it is given: instead of them. */
  readonly ca: string | undefined;
  readonly roleClaim: string | undefined;
  /** Roles by the value of the claim. */
  readonly roles: ReadonlyMap<string, Role>;
  /** `claims`: what `amr` says (RFC 8176); `provider`: it always asks; `ours`: the service asks. */
  readonly secondFactor: 'claims' | 'provider' | 'ours';
  /**
   * How long API tokens of people live at most whose roles come from the claim, in milliseconds.
   */
  readonly tokenMs: number;
}

interface Kept {
  readonly verifier: string;
  readonly state: string;
  readonly nonce: string;
}

/**
 * How long the provider may take for an answer. A name is looked up for less, so that a silent DNS
 * is told from a silent provider.
 */
const answerSeconds = 10;
/** In bytes. Metadata, keys and tokens with the groups of a person are far shorter. */
const longestAnswer = 1024 * 1024;
/** Sign-ins that wait for the provider at a time: in all, from a network and from an address. */
const placesOfSignIns = { all: 32, group: 8, caller: 4 };
/** The code by which an error, or what caused it, says that the name was not resolved. */
const nameFault = (error: unknown): string | undefined => {
  if (!(error instanceof Error)) return undefined;
  const { code = '' } = error as NodeJS.ErrnoException;
  return /^(?:ENOTFOUND|EAI_\w+)$/.test(code) || code === dnsTimeout ? code : nameFault(error.cause);
};

/** What the certificate of the provider lacks, as TLS says it. */
const certificateFault = (error: unknown): string | undefined => {
  if (!(error instanceof Error)) return undefined;
  const { code = '' } = error as NodeJS.ErrnoException;
  return /CERT|SIGNATURE|ISSUER|ALTNAME/.test(code) && !code.startsWith('OAUTH') ? code : certificateFault(error.cause);
};
/** The issuer that the provider's metadata name, where it is another one than dke.toml has. */
const otherIssuer = (error: unknown): string | undefined => {
  const { attribute, body } = ((error as Error | undefined)?.cause ?? {}) as {
    readonly attribute?: unknown;
    readonly body?: { readonly issuer?: unknown };
  };
  return attribute === 'issuer' && typeof body?.issuer === 'string' ? printable(body.issuer.slice(0, 500)) : undefined;
};
const general = 'check [oidc] in dke.toml, and that the provider can be reached from this host';
/** Why the provider was not found, and what to do. */
const notFound = (error: unknown, issuer: string): readonly [what: string, todo: string] => {
  const name = nameFault(error);
  if (name !== undefined) return [`the name of the OpenID provider cannot be resolved (${name})`, general];
  const certificate = certificateFault(error);
  if (certificate !== undefined)
    return [
      `the certificate of the OpenID provider is not trusted (${certificate})`,
      'set ca under [oidc] in dke.toml to a PEM file of the certificate authority that issued it',
    ];
  const other = otherIssuer(error);
  if (other !== undefined)
    return [
      `the OpenID provider calls itself ${other}, and dke.toml calls it ${issuer}`,
      'set issuer under [oidc] in dke.toml to exactly what the provider calls itself, with or without the slash at the end',
    ];
  return ['the OpenID provider does not answer', general];
};

/**
 * A provider that refuses the secret answers 401 with a challenge, and the library stops
 * there. What the provider says is in the body (RFC 6749, section 5.2).
 */
const withWords = async (error: unknown): Promise<unknown> => {
  const { response } = error as { readonly response?: unknown };
  if (!(error instanceof Error && response instanceof Response) || response.bodyUsed) return error;
  const body: unknown = await response.json().catch(() => undefined);
  const said = (name: string): object => {
    const value = (body as Readonly<Record<string, unknown>> | null | undefined)?.[name];
    return typeof value === 'string' ? { [name]: printable(value.slice(0, 500)) } : {};
  };
  return Object.assign(error, said('error'), said('error_description'));
};

/** The error that the provider has sent back with the browser (RFC 6749, section 4.1.2.1). */
const refusalOf = (error: unknown): string | undefined => {
  const { code, error: name } = error as { readonly code?: unknown; readonly error?: unknown };
  return code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR' && typeof name === 'string' && /^[a-z_]{1,40}$/.test(name)
    ? name
    : undefined;
};

/**
 * How the service authenticates at the token endpoint: by what the provider's metadata list, and
 * with HTTP Basic where they list nothing (OpenID Connect Discovery 1.0, section 3).
 */
const authenticateBy =
  ({ ClientSecretBasic, ClientSecretPost }: typeof openid, secret: string): openid.ClientAuth =>
  (provider, ...rest) => {
    const methods = provider.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const by = methods.includes('client_secret_basic') ? ClientSecretBasic : ClientSecretPost;
    by(secret)(provider, ...rest);
  };

/** How long the provider's metadata are believed. */
const believedMs = 3_600_000;
const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
const listOf = (value: unknown): readonly string[] =>
  typeof value === 'string' ? [value] : Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];

/** How the provider is called: each call has an end in total, and a largest answer. */
const openTransport = (ca: string | undefined) => {
  // Loaded when a provider is configured, at the start: loading takes too long while requests are
  // served.
  const libraries = Promise.all([import('openid-client'), import('undici')]);
  let dispatcher: Agent | undefined;
  const fetchFrom: openid.CustomFetch = async (url, init) => {
    const [, { Agent, fetch }] = await libraries;
    dispatcher ??= new Agent({
      connect: { lookup: lookupWithin(answerSeconds * 800), ...(ca === undefined ? {} : { ca: ca }) },
    });
    const agent = dispatcher;
    const { host } = new URL(url);
    return callOutside({ place: host, totalMs: answerSeconds * 1000 }, async (ended) => {
      const answer = await fetch(url, {
        method: init.method,
        headers: init.headers,
        ...(init.body === undefined || init.body === null ? {} : { body: String(init.body) }),
        redirect: 'manual',
        signal: init.signal == null ? ended : AbortSignal.any([ended, init.signal]),
        dispatcher: agent,
      });
      const body = answer.body === null ? null : await readAnswer(answer.body, longestAnswer, host);
      const { status, statusText } = answer;
      return new Response(body as Uint8Array<ArrayBuffer> | null, {
        status,
        statusText,
        headers: [...answer.headers],
      });
    });
  };
  return { libraries, fetchFrom };
};

/** What the claims say of a person. */
const createReader =
  (options: OpenIdOptions) =>
  (claims: Readonly<Record<string, unknown>> & { readonly sub: string }): OpenIdPerson => {
    const claimed = options.roleClaim === undefined ? null : claims[options.roleClaim];
    const isTold = typeof claimed === 'string' || Array.isArray(claimed);
    // Providers whose addresses are all their own leave the claim out. Some send it as a text.
    const isVerified = [undefined, true, 'true'].some((value) => claims.email_verified === value);
    const email = isVerified ? textOf(claims.email) : null;
    const roles = listOf(claimed).flatMap((value) => options.roles.get(value) ?? []);
    return {
      subject: claims.sub,
      name: textOf(claims.preferred_username) ?? email,
      displayName: textOf(claims.name),
      email,
      roles: options.roleClaim === undefined ? null : isTold ? [...new Set(roles)].sort() : 'not-told',
      secondFactor:
        options.secondFactor === 'provider' ||
        (options.secondFactor === 'claims' && listOf(claims.amr).some((method) => method === 'mfa')),
    };
  };

export const createOpenId = (options: OpenIdOptions, log: Log): IdentityProvider => {
  const { libraries, fetchFrom } = openTransport(options.ca);

  const signIns = createShares(placesOfSignIns);
  let known: { readonly configuration: openid.Configuration; readonly at: number } | undefined;
  let asking: Promise<openid.Configuration> | undefined;
  /** Looks up the provider. Callers who ask at the same time share the answer. */
  const lookUp = (): Promise<openid.Configuration> => {
    asking ??= discover().finally(() => {
      asking = undefined;
    });
    return asking;
  };
  const discover = async (): Promise<openid.Configuration> => {
    const now = performance.now();
    if (known !== undefined && now - known.at < believedMs) return known.configuration;
    const [openid] = await libraries;
    try {
      const secret = await options.clientSecret?.();
      const configuration = await openid.discovery(
        new URL(options.issuer),
        options.clientId,
        secret === undefined ? {} : { client_secret: secret },
        secret === undefined ? openid.None() : authenticateBy(openid, secret),
        { [openid.customFetch]: fetchFrom, timeout: answerSeconds },
      );
      configuration[openid.customFetch] = fetchFrom;
      // The ID token is believed by its signature, not only because TLS has carried it.
      openid.enableNonRepudiationChecks(configuration);
      known = { configuration, at: now };
      return configuration;
    } catch (error) {
      log.warn('the OpenID provider was not found', { issuer: options.issuer, error });
      const [what, todo] = notFound(error, options.issuer);
      throw new ServiceError('unavailable', what, {
        hint: `${todo}; a sign-in with a password works without it`,
        cause: error,
      });
    }
  };

  const personOf = createReader(options);

  return {
    label: options.label,
    managesRoles: options.roleClaim !== undefined,
    tokenMs: options.tokenMs,

    begin: async (redirectUri) => {
      const [openid] = await libraries;
      const configuration = await lookUp();
      const kept: Kept = {
        verifier: openid.randomPKCECodeVerifier(),
        state: openid.randomState(),
        nonce: openid.randomNonce(),
      };
      const url = openid.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: options.scopes,
        code_challenge: await openid.calculatePKCECodeChallenge(kept.verifier),
        code_challenge_method: 'S256',
        state: kept.state,
        nonce: kept.nonce,
      });
      return { url: url.href, state: kept.state, data: JSON.stringify(kept) };
    },

    finish: async (returned, data, peer) => {
      const [openid] = await libraries;
      const { verifier, state, nonce } = JSON.parse(data) as Kept;
      const [[, address], [, network] = [undefined, undefined]] = originsOf(peer);
      const release = signIns.take(address, network ?? address);
      if (release === undefined)
        throw new LimitRefused('sign-ins', 'too many sign-ins wait for the OpenID provider', {
          hint: 'start again at the sign-in page in a minute',
          retryAfterSeconds: answerSeconds,
        });
      try {
        const configuration = await lookUp();
        const tokens = await openid.authorizationCodeGrant(configuration, returned, {
          pkceCodeVerifier: verifier,
          expectedState: state,
          expectedNonce: nonce,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (claims === undefined) throw new Error('the answer has no ID token');
        // Many providers tell names and groups at their userinfo endpoint alone.
        const more =
          configuration.serverMetadata().userinfo_endpoint === undefined
            ? {}
            : await openid.fetchUserInfo(configuration, tokens.access_token, claims.sub);
        const merged = { ...more, ...claims };
        if (!isDeepStrictEqual(merged.sub, claims.sub)) throw new Error('the subjects differ');
        return personOf(merged);
      } catch (error) {
        if (error instanceof ServiceError) throw error;
        log.warn('a sign-in with the OpenID provider failed', { error: await withWords(error) });
        const refusal = refusalOf(error);
        const what =
          refusal === undefined
            ? 'the sign-in with the OpenID provider failed'
            : `the OpenID provider has refused the sign-in (${refusal})`;
        throw new ServiceError('unauthenticated', what, {
          hint:
            refusal === 'access_denied'
              ? 'you have cancelled, or the provider does not let you use this application: ask its administrators'
              : "start again at the sign-in page; the server's log has the reason",
          cause: error,
        });
      } finally {
        release();
      }
    },
  };
};
