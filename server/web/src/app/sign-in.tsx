// Sign-in with an administrator token. The token goes into one POST and into an HttpOnly cookie on the server's side; the
// field is emptied as soon as the answer is there.

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { send } from '../api/client.ts';
import { Button } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { Mark } from '../components/icon.tsx';
import { ProblemView } from '../components/problem-view.tsx';
import { ThemeToggle } from '../components/theme-toggle.tsx';
import { sessionQuery } from './session.ts';

export const SignIn = () => {
  const client = useQueryClient();
  const [token, setToken] = useState('');
  const signIn = useMutation({
    mutationFn: (secret: string) => send<unknown>({ method: 'POST', path: '/api/session', body: { token: secret } }),
    onSuccess: () => client.invalidateQueries({ queryKey: sessionQuery.queryKey }),
    onSettled: () => setToken(''),
  });
  useEffect(() => {
    document.title = 'Sign in · DKE console';
  }, []);

  return (
    <main className="flex min-h-dvh flex-col items-center px-4 pt-[12vh] pb-8">
      <div className="w-full max-w-sm">
        <Mark className="size-11" />
        <h1 className="mt-5 text-2xl font-semibold tracking-tight">Sign in to the console</h1>
        <p className="mt-1 text-muted">Keys for databases and cloud key stores, in your own hands.</p>
        <form
          className="mt-6 space-y-4 rounded-xl border border-line bg-surface p-5 shadow-raised"
          onSubmit={(event) => {
            event.preventDefault();
            const secret = token.trim();
            if (secret !== '' && !signIn.isPending) signIn.mutate(secret);
          }}
        >
          <TextField
            label="Administrator token"
            help={
              <>
                The service shows the first one once, when it starts for the first time. Another one is made with{' '}
                <code>dke token create</code>.
              </>
            }
            type="password"
            name="token"
            autoFocus
            mono
            value={token}
            onValue={setToken}
          />
          {signIn.error !== null && <ProblemView error={signIn.error} compact />}
          <Button type="submit" tone="primary" busy={signIn.isPending} className="w-full">
            Sign in
          </Button>
        </form>
        <div className="mt-6 flex justify-center">
          <ThemeToggle />
        </div>
      </div>
    </main>
  );
};
