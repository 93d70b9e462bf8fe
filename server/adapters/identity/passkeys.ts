// WebAuthn (Level 3) over @simplewebauthn/server: passkeys that the authenticator finds on its own,
// with its user verified. No attestation is asked for: which make of authenticator people use is
// theirs to choose.

import { isIP } from 'node:net';
import type { verifyAuthenticationResponse, verifyRegistrationResponse } from '@simplewebauthn/server';
import type { PasskeyCredential, Passkeys } from '../../ports/identity.ts';

type NewAnswer = Parameters<typeof verifyRegistrationResponse>[0]['response'];
type Answer = Parameters<typeof verifyAuthenticationResponse>[0]['response'];

const timeout = 120_000;

/** The library is large: it is loaded only where passkeys are used. */
const library = () => import('@simplewebauthn/server');

const described = ({ id, transports }: PasskeyCredential): { id: string; transports: string[] } => ({
  id,
  transports: [...transports],
});

/** `publicUrl`: the address that people are given; its host is the relying party. */
export const createPasskeys = (publicUrl: () => string): Passkeys => {
  const relyingParty = (): string => new URL(publicUrl()).hostname;
  const available = (): boolean => isIP(relyingParty().replaceAll(/[[\]]/g, '')) === 0;
  // At the start: loading takes too long while requests are served.
  if (available()) void library();
  return {
    available,

    askForNew: async (user, known) => {
      const options = await (await library()).generateRegistrationOptions({
        rpName: 'DKE',
        rpID: relyingParty(),
        userID: new TextEncoder().encode(user.id),
        userName: user.name,
        userDisplayName: user.displayName,
        timeout,
        attestationType: 'none',
        excludeCredentials: known.map(described),
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      });
      return { options, challenge: options.challenge };
    },

    verifyNew: async (response, challenge) => {
      try {
        const { verified, registrationInfo } = await (await library()).verifyRegistrationResponse({
          // Its shape is checked by the library, member by member.
          response: response as NewAnswer,
          expectedChallenge: challenge,
          expectedOrigin: publicUrl(),
          expectedRPID: relyingParty(),
          requireUserVerification: true,
        });
        if (!verified) return null;
        const { id, publicKey, counter, transports = [] } = registrationInfo.credential;
        return {
          credential: { id, publicKey: Buffer.from(publicKey).toString('base64url'), transports },
          counter,
        };
      } catch {
        return null;
      }
    },

    ask: async (known) => {
      const options = await (await library()).generateAuthenticationOptions({
        rpID: relyingParty(),
        timeout,
        allowCredentials: known.map(described),
        userVerification: 'required',
      });
      return { options, challenge: options.challenge };
    },

    verify: async (response, challenge, credential) => {
      try {
        const { verified, authenticationInfo } = await (await library()).verifyAuthenticationResponse({
          response: response as Answer,
          expectedChallenge: challenge,
          expectedOrigin: publicUrl(),
          expectedRPID: relyingParty(),
          requireUserVerification: true,
          credential: {
            id: credential.id,
            publicKey: new Uint8Array(Buffer.from(credential.publicKey, 'base64url')),
            counter: credential.counter,
            transports: [...credential.transports],
          },
        });
        return verified ? { counter: authenticationInfo.newCounter } : null;
      } catch {
        return null;
      }
    },
  };
};
