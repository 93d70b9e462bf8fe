// Sign-in without typing: a passkey, or the OpenID provider. The browser's own functions read and
// write the JSON of WebAuthn; no key passes through this code.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiProblem, send } from '../api/client.ts';
import type { Session } from '../api/types.ts';
import { sessionQuery } from '../session/current-session.ts';
import { TextField } from '../ui/fields/field.tsx';
import { Button } from '../ui/page/button.tsx';
import { ProblemView } from '../ui/page/problem-view.tsx';

interface Ways {
  readonly openId: string | null;
  readonly passkeys: boolean;
}

const waysQuery = {
  queryKey: ['/api/sign-in'],
  queryFn: () => send<Ways>({ method: 'GET', path: '/api/sign-in' }),
  staleTime: Number.POSITIVE_INFINITY,
  networkMode: 'always',
} as const;

const knowsPasskeys = (): boolean =>
  typeof PublicKeyCredential === 'function' && typeof PublicKeyCredential.parseRequestOptionsFromJSON === 'function';

const useWays = (): Ways => {
  const ways = useQuery(waysQuery);
  return { openId: ways.data?.openId ?? null, passkeys: ways.data?.passkeys === true && knowsPasskeys() };
};

/** The browser's or the authenticator's own error texts do not help the user. */
const ask = async (credential: Promise<Credential | null>): Promise<object> => {
  try {
    return answerOf(await credential);
  } catch (cause) {
    if (!(cause instanceof DOMException)) throw cause;
    const known = cause.name === 'InvalidStateError';
    throw new ApiProblem({
      status: 0,
      code: known ? 'passkey-known' : 'passkey-refused',
      title: known ? 'This device already has a passkey' : 'No passkey was received',
      detail: known
        ? 'You can use it to sign in.'
        : 'The request was cancelled or took too long, or this device has no passkey for this service.',
      hint: known ? undefined : 'Try again, or use another method.',
    });
  }
};

const answerOf = (credential: Credential | null): object => {
  if (!(credential instanceof PublicKeyCredential)) throw new Error('The authenticator did not answer.');
  return credential.toJSON() as object;
};

/** Gets a challenge from the service, asks the authenticator to sign it, and sends the answer. */
const usePasskey = (begin: string, give: (answer: object) => Promise<Session>) => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      const { options } = await send<{ options: PublicKeyCredentialRequestOptionsJSON }>({
        method: 'POST',
        path: begin,
      });
      const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
      return give(await ask(navigator.credentials.get({ publicKey })));
    },
    onSuccess: () => client.invalidateQueries({ queryKey: sessionQuery.queryKey }),
  });
};

/** Why the sign-in at the provider failed: our own text, selected by the code in the address. */
const refusals: Readonly<Record<string, string>> = {
  forbidden: 'Your account at the provider has no access to this service. Ask an administrator to register you.',
  unavailable: 'The provider did not answer.',
  'rate-limited': 'Too many attempts. Try again later.',
};

export const OtherWays = () => {
  const { openId, passkeys } = useWays();
  const [refused] = useState(() => new URLSearchParams(location.search).get('refused'));
  const passkey = usePasskey('/api/session/passkey/options', (answer) =>
    send<Session>({ method: 'POST', path: '/api/session/passkey', body: { answer } }),
  );
  const provider = useMutation({
    mutationFn: () => send<{ url: string }>({ method: 'POST', path: '/api/session/openid' }),
    onSuccess: ({ url }) => location.assign(url),
  });
  if (openId === null && !passkeys) return null;
  return (
    <div className="mt-4 space-y-3">
      {refused !== null && (
        <p role="alert" className="text-danger">
          {refusals[refused] ?? 'The sign-in at the provider is not valid. Try again.'}
        </p>
      )}
      {openId !== null && (
        <Button className="w-full" busy={provider.isPending} onClick={() => provider.mutate()}>
          Continue with {openId}
        </Button>
      )}
      {provider.error !== null && <ProblemView error={provider.error} compact />}
      {passkeys && (
        <Button className="w-full" busy={passkey.isPending} onClick={() => passkey.mutate()}>
          Use a passkey
        </Button>
      )}
      {passkey.error !== null && <ProblemView error={passkey.error} compact />}
    </div>
  );
};

/** A passkey instead of a one-time code. */
export const PasskeyStep = () => {
  const { passkeys } = useWays();
  const passkey = usePasskey('/api/session/second-factor/options', (answer) =>
    send<Session>({ method: 'POST', path: '/api/session/second-factor', body: { passkey: answer } }),
  );
  if (!passkeys) return null;
  return (
    <div className="mt-4 space-y-3">
      <Button className="w-full" busy={passkey.isPending} onClick={() => passkey.mutate()}>
        Use a passkey
      </Button>
      {passkey.error !== null && <ProblemView error={passkey.error} compact />}
    </div>
  );
};

/** Creates a passkey: at the first sign-in, and in the profile. */
export const AddPasskey = ({ onDone }: { onDone: () => void }) => {
  const client = useQueryClient();
  const { passkeys } = useWays();
  const [name, setName] = useState('');
  const add = useMutation({
    mutationFn: async () => {
      const begun = { method: 'POST', path: '/api/profile/passkeys/options' } as const;
      const { options } = await send<{ options: PublicKeyCredentialCreationOptionsJSON }>(begun);
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
      const answer = await ask(navigator.credentials.create({ publicKey }));
      return send<Session>({ method: 'POST', path: '/api/profile/passkeys', body: { name: name.trim(), answer } });
    },
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['/api/profile'] });
      await client.invalidateQueries({ queryKey: sessionQuery.queryKey });
      onDone();
    },
  });
  if (!passkeys) return null;
  return (
    <form
      className="space-y-3"
      onSubmit={(event) => {
        event.preventDefault();
        if (!add.isPending && name.trim() !== '') add.mutate();
      }}
    >
      <TextField
        label="Name of the passkey"
        help="For example: my laptop, blue security key."
        value={name}
        onValue={setName}
      />
      {add.error !== null && <ProblemView error={add.error} compact />}
      <Button type="submit" busy={add.isPending} className="w-full">
        Create passkey
      </Button>
    </form>
  );
};
