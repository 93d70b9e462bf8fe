// Sign-in: with a name and a password, or with a token. The secret goes into one POST, the session
// comes back as an HttpOnly cookie, and the fields are emptied when the answer arrives. Then asks
// for what the session still needs: a new password, a second factor.

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from 'react';
import { send } from '../api/client.ts';
import type { Session } from '../api/types.ts';
import { AddPasskey, OtherWays, PasskeyStep } from '../people/other-ways.tsx';
import { sessionQuery, useSignOut, wasEnded } from '../session/current-session.ts';
import { TextField } from '../ui/fields/field.tsx';
import { Button } from '../ui/page/button.tsx';
import { Mark } from '../ui/page/icon.tsx';
import { Notice } from '../ui/page/notice.tsx';
import { ProblemView } from '../ui/page/problem-view.tsx';
import { ThemeToggle } from '../ui/page/theme-toggle.tsx';

const Frame = ({ title, text, children }: { title: string; text: string; children: ReactNode }) => {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · DKE console`;
    // Without a field in focus, users of a keyboard or screen reader continue at the heading of the
    // current step.
    if (document.activeElement === null || document.activeElement === document.body) heading.current?.focus();
  }, [title]);
  return (
    <main className="flex min-h-dvh flex-col items-center px-4 pt-[12vh] pb-8">
      <div className="w-full max-w-sm">
        <Mark className="size-11" />
        <h1 ref={heading} tabIndex={-1} className="mt-5 text-2xl font-semibold tracking-tight outline-none">
          {title}
        </h1>
        <p className="mt-1 text-muted">{text}</p>
        {children}
        <div className="mt-6 flex justify-center">
          <ThemeToggle />
        </div>
      </div>
    </main>
  );
};

const formClass = 'mt-6 space-y-4 rounded-xl border border-line bg-surface p-5 shadow-raised';

const useEntry = (path: string, forget: () => void) => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: object) => send<Session>({ method: 'POST', path, body }),
    onSuccess: () => client.invalidateQueries({ queryKey: sessionQuery.queryKey }),
    onSettled: forget,
  });
};

export const SignIn = () => {
  const [withToken, setWithToken] = useState(false);
  const [ended] = useState(wasEnded);
  const [user, setUser] = useState('');
  const [secret, setSecret] = useState('');
  const signIn = useEntry('/api/session', () => setSecret(''));
  return (
    <Frame title="Sign in to the console" text="Keys for databases and cloud key stores, under your control.">
      {ended && (
        <div className="mt-4">
          <Notice tone="info" title="Your session has ended">
            Your session expired or was ended. Sign in to continue where you were.
          </Notice>
        </div>
      )}
      <form
        className={formClass}
        onSubmit={(event) => {
          event.preventDefault();
          if (signIn.isPending || secret === '') return;
          signIn.mutate(withToken ? { token: secret.trim() } : { user: user.trim(), password: secret });
        }}
      >
        {withToken ? (
          <TextField
            key="token"
            label="Administrator token"
            help={
              <>
                The service shows the first token only once, at its first start. Create another one with{' '}
                <code>dke token create</code>.
              </>
            }
            type="password"
            name="token"
            autoFocus
            mono
            value={secret}
            onValue={setSecret}
          />
        ) : (
          <>
            <TextField
              label="User name"
              name="username"
              autoComplete="username"
              autoCapitalize="off"
              autoFocus
              value={user}
              onValue={setUser}
            />
            <TextField
              key="password"
              label="Password"
              type="password"
              name="password"
              autoComplete="current-password"
              value={secret}
              onValue={setSecret}
            />
          </>
        )}
        {signIn.error !== null && <ProblemView error={signIn.error} compact />}
        <Button type="submit" tone="primary" busy={signIn.isPending} className="w-full">
          Sign in
        </Button>
        <Button
          tone="quiet"
          className="w-full"
          onClick={() => {
            setWithToken(!withToken);
            setSecret('');
            signIn.reset();
          }}
        >
          {withToken ? 'Use a user name and a password' : 'Use a token'}
        </Button>
      </form>
      <OtherWays />
    </Frame>
  );
};

const PasswordFields = ({
  password,
  again,
  onPassword,
  onAgain,
}: {
  password: string;
  again: string;
  onPassword: (value: string) => void;
  onAgain: (value: string) => void;
}) => (
  <>
    <TextField
      label="New password"
      type="password"
      autoComplete="new-password"
      help="Use a long passphrase: four or five words that only you know."
      value={password}
      onValue={onPassword}
    />
    <TextField
      label="Confirm password"
      type="password"
      autoComplete="new-password"
      fault={again !== '' && again !== password ? 'Passwords do not match' : undefined}
      value={again}
      onValue={onAgain}
    />
  </>
);

/**
 * The page that an invitation opens. Its secret follows the # of the address, which the browser
 * sends to no server.
 */
export const Invitation = ({ other, onDone }: { other: string | undefined; onDone: () => void }) => {
  const client = useQueryClient();
  const [invitation] = useState(() => location.hash.slice(1));
  const [password, setPassword] = useState('');
  const [again, setAgain] = useState('');
  const redeem = useEntry('/api/session/invitation', () => {
    setPassword('');
    setAgain('');
  });
  useEffect(() => {
    if (!redeem.isSuccess) return;
    // Another user's data must not stay in the cache.
    void client.resetQueries();
    onDone();
  }, [redeem.isSuccess, client, onDone]);
  useEffect(() => {
    // Removed from the address and the history. The invitation is single-use.
    history.replaceState(null, '', '/');
  }, []);
  return (
    <Frame title="Welcome" text="Choose a password to sign in with.">
      <form
        className={formClass}
        onSubmit={(event) => {
          event.preventDefault();
          if (!redeem.isPending && password === again) redeem.mutate({ invitation, password });
        }}
      >
        {other !== undefined && (
          <p className="text-muted">
            This browser is signed in as <strong className="text-ink">{other}</strong>. It will be signed in as the
            invited user.
          </p>
        )}
        <PasswordFields password={password} again={again} onPassword={setPassword} onAgain={setAgain} />
        {redeem.error !== null && <ProblemView error={redeem.error} compact />}
        <Button type="submit" tone="primary" busy={redeem.isPending} className="w-full">
          Set password and sign in
        </Button>
      </form>
    </Frame>
  );
};

const NewPassword = () => {
  const [current, setCurrent] = useState('');
  const [password, setPassword] = useState('');
  const [again, setAgain] = useState('');
  const change = useEntry('/api/profile/password', () => {
    setCurrent('');
    setPassword('');
    setAgain('');
  });
  return (
    <form
      className={formClass}
      onSubmit={(event) => {
        event.preventDefault();
        if (!change.isPending && password === again) change.mutate({ current, password });
      }}
    >
      <TextField
        label="Current password"
        type="password"
        autoComplete="current-password"
        value={current}
        onValue={setCurrent}
      />
      <PasswordFields password={password} again={again} onPassword={setPassword} onAgain={setAgain} />
      {change.error !== null && <ProblemView error={change.error} compact />}
      <Button type="submit" tone="primary" busy={change.isPending} className="w-full">
        Change password
      </Button>
    </form>
  );
};

const SecondFactor = () => {
  const [code, setCode] = useState('');
  const [recovery, setRecovery] = useState(false);
  const give = useEntry('/api/session/second-factor', () => setCode(''));
  return (
    <form
      className={formClass}
      onSubmit={(event) => {
        event.preventDefault();
        if (give.isPending) return;
        give.mutate(recovery ? { recoveryCode: code.trim() } : { code: code.replaceAll(/\s/g, '') });
      }}
    >
      <TextField
        key={recovery ? 'recovery' : 'code'}
        label={recovery ? 'Recovery code' : 'One-time code'}
        help={recovery ? 'Each code works once.' : 'The current code in your app.'}
        inputMode={recovery ? 'text' : 'numeric'}
        autoComplete={recovery ? 'off' : 'one-time-code'}
        autoFocus
        mono
        value={code}
        onValue={setCode}
      />
      {give.error !== null && <ProblemView error={give.error} compact />}
      <Button type="submit" tone="primary" busy={give.isPending} className="w-full">
        Continue
      </Button>
      <Button tone="quiet" className="w-full" onClick={() => setRecovery(!recovery)}>
        {recovery ? 'Use a one-time code' : 'Use a recovery code'}
      </Button>
    </form>
  );
};

// The code for QR codes is loaded with the first enrolment.
const EnrolTotp = lazy(() => import('../people/totp.tsx').then((module) => ({ default: module.EnrolTotp })));

const asked = {
  'new-password': ['Choose a new password', 'Your password was reset or is too old.'],
  'second-factor': ['Second factor required', 'Your password is correct. Now confirm that it is you.'],
  enrolment: [
    'Set up two-step verification',
    'Your roles require it. Use codes from an app on your phone, or a passkey on this device or on a security key.',
  ],
} as const satisfies Record<NonNullable<Session['missing']>, readonly [string, string]>;

/** What a session that has started still needs before it may do anything. */
export const Unfinished = ({ missing }: { missing: NonNullable<Session['missing']> }) => {
  const signOut = useSignOut();
  const [title, text] = asked[missing];
  return (
    <Frame title={title} text={text}>
      {missing === 'new-password' && <NewPassword />}
      {missing === 'second-factor' && (
        <>
          <SecondFactor />
          <PasskeyStep />
        </>
      )}
      {missing === 'enrolment' && (
        <div className={formClass}>
          <Suspense fallback={<p role="status">Opening…</p>}>
            <EnrolTotp onDone={() => undefined} />
          </Suspense>
          <p className="text-center text-muted">or</p>
          <AddPasskey onDone={() => undefined} />
        </div>
      )}
      <Button className="mt-4 w-full" icon="signOut" onClick={() => signOut.mutate()}>
        Sign out
      </Button>
    </Frame>
  );
};
