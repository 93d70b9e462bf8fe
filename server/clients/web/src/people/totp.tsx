// Enrolment of a one-time code: the secret as a QR code that is drawn here (no service of others
// sees it) and as text, and its first code, which makes it count.

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { encode } from 'uqr';
import { send } from '../api/client.ts';
import type { Session } from '../api/types.ts';
import { sessionQuery } from '../session/current-session.ts';
import { TextField } from '../ui/fields/field.tsx';
import { SecretValue } from '../ui/fields/secret-once.tsx';
import { Button } from '../ui/page/button.tsx';
import { ProblemView } from '../ui/page/problem-view.tsx';

interface Begun {
  readonly id: string;
  readonly secret: string;
  readonly uri: string;
}

/** Black on white in both themes: that is what cameras read. */
const QrCode = ({ text }: { text: string }) => {
  const { size, data } = encode(text, { ecc: 'M', border: 3 });
  const path = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : []))).join('');
  return (
    <svg
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label="QR code of the secret, shown below as text"
      className="mx-auto block w-48 rounded-lg"
      shapeRendering="crispEdges"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
};

export const EnrolTotp = ({ onDone }: { onDone: () => void }) => {
  const client = useQueryClient();
  const [name, setName] = useState('Authenticator');
  const [code, setCode] = useState('');
  const begin = useMutation({
    mutationFn: () =>
      send<Begun>(
        { method: 'POST', path: '/api/profile/totp', body: { name } },
        { idempotencyKey: crypto.randomUUID() },
      ),
  });
  const confirm = useMutation({
    mutationFn: (id: string) =>
      send<Session>({ method: 'POST', path: `/api/profile/totp/${encodeURIComponent(id)}/confirm`, body: { code } }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['/api/profile'] });
      await client.invalidateQueries({ queryKey: sessionQuery.queryKey });
      onDone();
    },
    onSettled: () => setCode(''),
  });
  const begun = begin.data;
  if (begun === undefined)
    return (
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (!begin.isPending) begin.mutate();
        }}
      >
        <TextField
          label="Name"
          help="The app or phone that shows the codes, for example."
          maxLength={128}
          value={name}
          onValue={setName}
        />
        {begin.error !== null && <ProblemView error={begin.error} compact />}
        <Button type="submit" tone="primary" busy={begin.isPending} className="w-full">
          Show QR code
        </Button>
      </form>
    );
  return (
    <form
      className="space-y-4"
      onSubmit={(event) => {
        event.preventDefault();
        if (!confirm.isPending) confirm.mutate(begun.id);
      }}
    >
      <p>Scan it with the app, or enter the secret there. It is shown only once.</p>
      <QrCode text={begun.uri} />
      <SecretValue label="Secret" value={begun.secret} />
      <TextField
        label="Code from the app"
        inputMode="numeric"
        autoComplete="one-time-code"
        mono
        autoFocus
        value={code}
        onValue={setCode}
      />
      {confirm.error !== null && <ProblemView error={confirm.error} compact />}
      <Button type="submit" tone="primary" busy={confirm.isPending} className="w-full">
        Confirm
      </Button>
    </form>
  );
};
