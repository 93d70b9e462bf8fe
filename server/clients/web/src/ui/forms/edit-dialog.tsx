// Changes a resource. The first values of the fields and the entity tag come from one read, so that
// the change of another person in between is refused instead of undone. Then both are shown, field
// by field, and the person decides.

import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { type Answer, type ApiCall, ApiProblem, sendForAnswer } from '../../api/client.ts';
import { Async } from '../page/async.tsx';
import { Button } from '../page/button.tsx';
import { Notice } from '../page/notice.tsx';
import { Dialog } from './dialog.tsx';
import { TaggedForm, type TaggedFormProps } from './form.tsx';
import { useUnsaved } from './unsaved.tsx';

/** What the fields of a form get. */
export interface Fields<Resource, Body> {
  readonly resource: Resource;
  /** What was read: the fields begin with it. */
  readonly first: Body;
  /** What would be sent now. */
  readonly body: Body;
  /** Undefined: what is in the fields cannot be sent. */
  readonly onBody: (body: Body | undefined) => void;
  /** Whether `body` may be sent, as far as the fields know; it may until they say so. */
  readonly onReady: (isReady: boolean) => void;
  /** The fault of a field by its path in the body. */
  readonly fault: (path: string) => string | undefined;
}

interface EditDialogProps<Resource, Body extends object>
  extends Pick<TaggedFormProps<Resource>, 'submitTone' | 'renews' | 'done' | 'onDone'> {
  readonly title: string;
  readonly submitLabel: string | ((body: Body) => string);
  readonly wide?: boolean;
  readonly onClose: () => void;
  /** Where the resource is read, with its tag. */
  readonly path: string;
  readonly bodyOf: (resource: Resource) => Body;
  readonly callOf: (body: Body) => ApiCall & { readonly method: 'PUT' | 'DELETE' };
  /** The members of the body, in words. */
  readonly names: Readonly<Record<keyof Body & string, string>>;
  readonly children: (fields: Fields<Resource, Body>) => ReactNode;
  /** What was read when the person began; absent: the dialog reads it. */
  readonly read?: Tagged<Resource>;
  /** What would be sent without a further change; absent: what was read. */
  readonly begin?: (first: Body) => Body;
  /** The person takes what another one has saved; absent: the dialog reads it again. */
  readonly onTake?: () => void;
}

/** A resource with its entity tag. */
export interface Tagged<Resource> {
  readonly data: Resource;
  readonly etag: string;
}

/** Throws ApiProblem. */
export const readTagged = async <Resource,>(path: string, signal?: AbortSignal): Promise<Tagged<Resource>> => {
  const { data, etag }: Answer<Resource> = await sendForAnswer<Resource>({ method: 'GET', path }, { signal });
  if (etag === undefined) throw new Error(`${path} has no entity tag`);
  return { data, etag };
};

/** A value of a field, for a person. */
const textOf = (value: unknown): string => {
  if (value === null || value === undefined || value === '') return '–';
  if (Array.isArray(value) && value.length === 0) return '–';
  return typeof value === 'object' ? JSON.stringify(value, null, 1) : String(value);
};

/** What another person has saved since this form was opened, beside what is in it. */
const Conflict = <Body extends object>({
  names,
  read,
  newest,
  own,
  onTake,
  onKeep,
}: {
  names: Readonly<Record<keyof Body & string, string>>;
  read: Body;
  newest: Body;
  own: Body;
  onTake: () => void;
  onKeep: () => void;
}) => {
  const changed = (Object.keys(names) as (keyof Body & string)[]).filter(
    (name) => JSON.stringify(newest[name]) !== JSON.stringify(read[name]),
  );
  return (
    <Notice tone="warn" title="Another person has changed this in the meantime">
      {changed.length === 0 ? (
        <p>What this form changes is as you opened it.</p>
      ) : (
        <table className="mt-2 w-full text-left">
          <caption className="sr-only">What was saved, and what you entered</caption>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Saved now</th>
              <th scope="col">Yours</th>
            </tr>
          </thead>
          <tbody>
            {changed.map((name) => (
              <tr key={name} className="align-top">
                <th scope="row" className="pr-3 font-medium">
                  {names[name]}
                </th>
                <td className="pr-3">
                  <code className="wrap-anywhere whitespace-pre-wrap">{textOf(newest[name])}</code>
                </td>
                <td>
                  <code className="wrap-anywhere whitespace-pre-wrap">{textOf(own[name])}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <div className="mt-3 flex flex-wrap gap-2">
        <Button onClick={onTake}>Take what was saved</Button>
        <Button onClick={onKeep}>Keep mine, and save again</Button>
      </div>
    </Notice>
  );
};

const EditForm = <Resource, Body extends object>({
  answer: { data: resource, etag },
  onReadAgain,
  path,
  bodyOf,
  callOf,
  names,
  submitLabel,
  begin = (as) => as,
  onTake = onReadAgain,
  onClose,
  children,
  ...form
}: Omit<EditDialogProps<Resource, Body>, 'title' | 'wide' | 'read'> & {
  answer: Tagged<Resource>;
  onReadAgain: () => void;
}) => {
  const unsaved = useUnsaved();
  const first = bodyOf(resource);
  const [body, setBody] = useState<Body>(() => begin(first));
  const [isValid, setValid] = useState(true);
  const [isReady, setReady] = useState(true);
  /** What a conflict has shown, and the person replaces knowingly. */
  const [seen, setSeen] = useState<string | null>(null);
  const change = (next: Body | undefined): void => {
    setValid(next !== undefined);
    if (next !== undefined) setBody(next);
  };
  const refused = (error: unknown): ReactNode => {
    if (!(error instanceof ApiProblem) || error.status !== 412) return undefined;
    return (
      <Newest<Resource> path={path}>
        {(newest) =>
          newest.etag === seen ? (
            <p role="status">Save again to replace what was saved.</p>
          ) : (
            <Conflict
              names={names}
              read={first}
              newest={bodyOf(newest.data)}
              own={body}
              onTake={() => {
                unsaved?.forget();
                onTake();
              }}
              onKeep={() => setSeen(newest.etag)}
            />
          )
        }
      </Newest>
    );
  };
  return (
    <TaggedForm<Resource>
      {...form}
      call={callOf(body)}
      ifMatch={seen ?? etag}
      submitLabel={typeof submitLabel === 'string' ? submitLabel : submitLabel(body)}
      submitDisabled={!isValid || !isReady}
      onCancel={onClose}
      refused={refused}
    >
      {(fault) => children({ resource, first, body, onBody: change, onReady: setReady, fault })}
    </TaggedForm>
  );
};

/** The resource as it is stored after a refusal. */
const Newest = <Resource,>({ path, children }: { path: string; children: (newest: Tagged<Resource>) => ReactNode }) => {
  const query = useQuery({
    queryKey: [path, 'newest'],
    queryFn: ({ signal }) => readTagged<Resource>(path, signal),
    staleTime: 0,
    gcTime: 0,
  });
  return (
    <Async query={query} lines={2}>
      {children}
    </Async>
  );
};

export const EditDialog = <Resource, Body extends object>({
  title,
  wide = false,
  read,
  ...form
}: EditDialogProps<Resource, Body>) => {
  const { path, onClose } = form;
  const query = useQuery({
    queryKey: [path, 'edited'],
    queryFn: ({ signal }) => readTagged<Resource>(path, signal),
    // Read once: what is being edited does not change below the person.
    staleTime: 'static',
    gcTime: 0,
    ...(read === undefined ? {} : { initialData: read }),
  });
  return (
    <Dialog title={title} wide={wide} onClose={onClose}>
      <Async query={query} lines={5}>
        {(answer) => <EditForm key={answer.etag} {...form} answer={answer} onReadAgain={() => void query.refetch()} />}
      </Async>
    </Dialog>
  );
};
