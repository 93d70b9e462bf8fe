// Passkeys in the browser: the service's challenge is passed to the browser, and the answer is sent
// as JSON (WebAuthn Level 3).

import { send } from './client.ts';

interface Question {
  readonly options: Readonly<Record<string, unknown>>;
}
const ask = (path: string): Promise<Question> => send<Question>({ method: 'POST', path, body: {} });

const toJson = (credential: Credential | null): object => {
  if (!(credential instanceof PublicKeyCredential)) throw new Error('No passkey was received.');
  return credential.toJSON();
};

/** Whether the browser supports passkeys. */
export const hasPasskeys = (): boolean =>
  'PublicKeyCredential' in globalThis && 'parseRequestOptionsFromJSON' in PublicKeyCredential;

/** Asks an authenticator to create a passkey. */
export const makePasskey = async (): Promise<object> => {
  const { options } = await ask('/api/profile/passkeys/options');
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(
    options as unknown as PublicKeyCredentialCreationOptionsJSON,
  );
  return toJson(await navigator.credentials.create({ publicKey }));
};
