// A form that makes one API call: it shows the call, sends it once per press, and keeps the
// answer's faults in place.

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import { type ApiCall, ApiProblem, type Method, send } from '../../api/client.ts';
import { useAnnounce } from '../page/announce.tsx';
import { Button, type ButtonTone } from '../page/button.tsx';
import { ProblemView } from '../page/problem-view.tsx';
import { renew } from '../table/shorten-lists.ts';
import { ApiCallView } from './api-call.tsx';
import { Dialog, DialogActions, DiscardDialog } from './dialog.tsx';
import { UnsavedGuard, useUnsaved } from './unsaved.tsx';

export interface CallFormProps<Result> {
  /** What replaces a resource needs its entity tag: EditDialog. */
  readonly call: ApiCall & { readonly method: 'POST' | 'DELETE' };
  /** A create: a repeat after a lost answer must not create a second resource. */
  readonly creates?: boolean;
  readonly ifMatch?: string | undefined;
  /** The body contains a secret: the form shows the call without it. */
  readonly secretBody?: boolean;
  /** What is typed is quickly typed again, or is a secret: it may be lost. */
  readonly typedAgain?: boolean;
  /** Members of the body that are computed when it is sent; they are not shown. */
  readonly complete?: () => Promise<object>;
  readonly submitLabel: string;
  readonly submitTone?: ButtonTone;
  readonly submitDisabled?: boolean;
  /** First parts of the query keys that the call changes: read again before the form is done. */
  readonly renews?: readonly string[];
  /** What to announce. */
  readonly done?: string | ((result: Result) => string);
  /** What follows; the form closes when absent. */
  readonly onDone?: (result: Result) => void | Promise<void>;
  readonly onCancel?: () => void;
  /** Receives the fault of a field by its path in the body. */
  readonly children: (fault: (path: string) => string | undefined) => ReactNode;
}

/** A form that replaces a resource, which is still the one of this entity tag. */
export interface TaggedFormProps<Result> extends Omit<CallFormProps<Result>, 'call' | 'ifMatch'> {
  readonly call: ApiCall & { readonly method: 'PUT' | 'DELETE' };
  readonly ifMatch: string;
  /** In place of the problem; undefined: the problem. */
  readonly refused?: (error: unknown) => ReactNode;
}

/** Outside of a dialog, it brings its own guard of what was typed. */
export const CallForm = <Result,>(props: CallFormProps<Result>) =>
  useUnsaved() === undefined ? (
    <UnsavedGuard question={DiscardDialog}>
      <Form {...props} />
    </UnsavedGuard>
  ) : (
    <Form {...props} />
  );

/** In a dialog. */
export const TaggedForm = <Result,>(props: TaggedFormProps<Result>) => <Form {...props} />;

/**
 * The schemas are many, so a page without a form does not have them; undefined: without them the
 * service judges alone.
 */
const loadSchemas = () => import('../../api/body-faults.ts').catch(() => undefined);

/**
 * Every form asks the contract's schema before the service: a wrong field costs no request. Throws
 * ApiProblem.
 */
const refuseFaults = async (call: ApiCall): Promise<void> => {
  const fields = (await loadSchemas())?.bodyFaults(call) ?? [];
  if (fields.length === 0) return;
  throw new ApiProblem({
    status: 400,
    code: 'validation',
    title: 'The request is not valid',
    detail: 'Nothing was sent: correct the fields that are marked.',
    fields,
  });
};

const Form = <Result,>({
  call,
  creates = false,
  ifMatch,
  secretBody = false,
  typedAgain = secretBody,
  complete,
  submitLabel,
  submitTone = 'primary',
  submitDisabled = false,
  renews = [],
  done,
  onCancel,
  onDone = onCancel,
  refused,
  children,
}: Omit<CallFormProps<Result>, 'call'> &
  Pick<TaggedFormProps<Result>, 'refused'> & {
    call: ApiCall & { readonly method: Exclude<Method, 'GET'> };
  }) => {
  const client = useQueryClient();
  const announce = useAnnounce();
  const unsaved = useUnsaved();
  // One key for each opened form and body: a repeat after a lost answer is the same create, and an
  // edited form is a new one.
  const [attempt, setAttempt] = useState<{ body: string; key: string } | null>(null);
  const mutation = useMutation<Result, unknown, void>({
    mutationFn: async () => {
      if (complete !== undefined) {
        const whole = { ...call, body: { ...call.body, ...(await complete()) } };
        await refuseFaults(whole);
        return send<Result>(whole, { ifMatch });
      }
      await refuseFaults(call);
      if (!creates) return send<Result>(call, { ifMatch });
      const body = JSON.stringify(call.body ?? null);
      const current = attempt !== null && attempt.body === body ? attempt : { body, key: crypto.randomUUID() };
      setAttempt(current);
      return send<Result>(call, { idempotencyKey: current.key, ifMatch });
    },
    onSuccess: async (result) => {
      unsaved?.forget();
      await renew(client, renews);
      if (done !== undefined) announce(typeof done === 'string' ? done : done(result));
      await onDone?.(result);
    },
  });
  useEffect(() => void loadSchemas(), []);
  const fields = mutation.error instanceof ApiProblem ? mutation.error.fields : [];

  return (
    <form
      className="space-y-4"
      onInput={() => {
        if (!typedAgain) unsaved?.note();
      }}
      onSubmit={(event) => {
        event.preventDefault();
        if (!mutation.isPending && !submitDisabled) mutation.mutate();
      }}
    >
      {children((path) => fields.find((field) => field.path === path)?.message)}
      {mutation.error !== null && (refused?.(mutation.error) ?? <ProblemView error={mutation.error} compact />)}
      <ApiCallView call={call} ifMatch={ifMatch} secretBody={secretBody} />
      <DialogActions>
        {onCancel !== undefined && (
          <Button data-cancel onClick={() => unsaved?.leave(onCancel)}>
            Cancel
          </Button>
        )}
        <Button type="submit" tone={submitTone} busy={mutation.isPending} disabled={submitDisabled}>
          {submitLabel}
        </Button>
      </DialogActions>
    </form>
  );
};

/** A call form in a dialog. */
export const FormDialog = <Result,>({
  title,
  wide,
  ...form
}: CallFormProps<Result> & { title: string; wide?: boolean; onCancel: () => void }) => (
  <Dialog title={title} onClose={form.onCancel} {...(wide === undefined ? {} : { wide })}>
    <CallForm {...form} />
  </Dialog>
);
