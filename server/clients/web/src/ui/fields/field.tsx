// Form fields: a visible label, the help text, and the error; assistive technology reads all three.

import { type ComponentProps, type ReactNode, useId } from 'react';

export interface FieldFrame {
  readonly label: string;
  readonly help?: ReactNode;
  readonly fault?: string | undefined;
  readonly optional?: boolean;
}

export const control =
  'w-full min-h-9 rounded-md border border-line-strong bg-surface px-3 py-1.5 text-sm text-ink placeholder:text-muted disabled:bg-quiet-soft disabled:text-muted aria-invalid:border-danger';

export const Frame = ({
  id,
  label,
  help,
  fault,
  optional,
  compact = false,
  children,
}: FieldFrame & { id: string; compact?: boolean; children: ReactNode }) => (
  <div className={compact ? 'min-w-0' : 'space-y-1'}>
    <label
      htmlFor={id}
      className={compact ? 'mb-0.5 block text-xs text-muted' : 'flex items-baseline justify-between gap-2 font-medium'}
    >
      {label}
      {optional === true && !compact && <span className="text-xs font-normal text-muted">optional</span>}
    </label>
    {children}
    {fault !== undefined && (
      <p id={`${id}-fault`} className="text-danger">
        {fault}
      </p>
    )}
    {help !== undefined && (
      <p id={`${id}-help`} className="text-xs text-muted">
        {help}
      </p>
    )}
  </div>
);

export const describe = (id: string, { help, fault }: FieldFrame): string | undefined =>
  [fault === undefined ? '' : `${id}-fault`, help === undefined ? '' : `${id}-help`].join(' ').trim() || undefined;

export const TextField = ({
  label,
  help,
  fault,
  optional = false,
  onValue,
  mono = false,
  ...rest
}: FieldFrame & { onValue: (value: string) => void; mono?: boolean } & Omit<
    ComponentProps<'input'>,
    'onChange' | 'id'
  >) => {
  const id = useId();
  const frame = { label, help, fault, optional };
  return (
    <Frame id={id} {...frame}>
      <input
        type="text"
        autoComplete="off"
        spellCheck={false}
        required={!optional}
        {...rest}
        id={id}
        aria-invalid={fault !== undefined || undefined}
        aria-describedby={describe(id, frame)}
        onChange={(event) => onValue(event.target.value)}
        className={`${control} ${mono ? 'font-mono' : ''}`}
      />
    </Frame>
  );
};

/** Several lines: a certificate, a list of rules. */
export const AreaField = ({
  label,
  help,
  fault,
  optional = false,
  onValue,
  ...rest
}: FieldFrame & { onValue: (value: string) => void } & Omit<ComponentProps<'textarea'>, 'onChange' | 'id'>) => {
  const id = useId();
  const frame = { label, help, fault, optional };
  return (
    <Frame id={id} {...frame}>
      <textarea
        autoComplete="off"
        spellCheck={false}
        required={!optional}
        rows={6}
        {...rest}
        id={id}
        aria-invalid={fault !== undefined || undefined}
        aria-describedby={describe(id, frame)}
        onChange={(event) => onValue(event.target.value)}
        className={`${control} font-mono text-xs`}
      />
    </Frame>
  );
};

/** The first field of every form that creates a resource: its name, with the limits of the API. */
export const NameField = (props: Omit<ComponentProps<typeof TextField>, 'label'> & { readonly label?: string }) => (
  <TextField label="Name" maxLength={128} autoFocus {...props} />
);

export interface Choice {
  readonly value: string;
  readonly text: string;
  readonly disabled?: boolean;
}

export const SelectField = ({
  label,
  help,
  fault,
  optional = false,
  choices,
  placeholder,
  onValue,
  ...rest
}: FieldFrame & {
  choices: readonly Choice[];
  /** Text of the empty choice; without it there is none. */
  placeholder?: string;
  onValue: (value: string) => void;
} & Omit<ComponentProps<'select'>, 'onChange' | 'id' | 'children'>) => {
  const id = useId();
  const frame = { label, help, fault, optional };
  return (
    <Frame id={id} {...frame}>
      <select
        required={!optional}
        {...rest}
        id={id}
        aria-invalid={fault !== undefined || undefined}
        aria-describedby={describe(id, frame)}
        onChange={(event) => onValue(event.target.value)}
        className={control}
      >
        {placeholder !== undefined && <option value="">{placeholder}</option>}
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value} disabled={choice.disabled}>
            {choice.text}
          </option>
        ))}
      </select>
    </Frame>
  );
};

export const CheckField = ({
  label,
  help,
  checked,
  onValue,
  disabled = false,
}: {
  label: string;
  help?: ReactNode;
  checked: boolean;
  onValue: (checked: boolean) => void;
  disabled?: boolean;
}) => {
  const id = useId();
  return (
    <div className="flex gap-2.5">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onValue(event.target.checked)}
        aria-describedby={help === undefined ? undefined : `${id}-help`}
        className="mt-0.5 size-4 shrink-0 accent-accent"
      />
      <div>
        <label htmlFor={id} className="font-medium">
          {label}
        </label>
        {help !== undefined && (
          <p id={`${id}-help`} className="text-xs text-muted">
            {help}
          </p>
        )}
      </div>
    </div>
  );
};

/** A file that is chosen; its content is not read here. */
export const FileField = ({
  label,
  help,
  fault,
  optional = false,
  onFile,
}: FieldFrame & { onFile: (file: File | undefined) => void }) => {
  const id = useId();
  const frame = { label, help, fault, optional };
  return (
    <Frame id={id} {...frame}>
      <input
        id={id}
        type="file"
        required={!optional}
        aria-invalid={fault !== undefined || undefined}
        aria-describedby={describe(id, frame)}
        onChange={(event) => onFile(event.target.files?.[0])}
        className={`${control} cursor-pointer py-1 pl-1 file:mr-3 file:rounded file:border file:border-line-strong file:bg-raised file:px-2.5 file:py-1 file:font-medium file:text-ink`}
      />
    </Frame>
  );
};

/**
 * A secret that this page uses and never sends. What is typed is handed out as bytes, which the
 * receiver wipes; no state of the page holds the text, only the browser's own field does.
 */
export const SecretField = ({
  label,
  help,
  fault,
  onBytes,
}: FieldFrame & { onBytes: (bytes: Uint8Array<ArrayBuffer>) => void }) => {
  const id = useId();
  const frame = { label, help, fault };
  return (
    <Frame id={id} {...frame}>
      <input
        id={id}
        type="password"
        autoComplete="off"
        spellCheck={false}
        required
        aria-invalid={fault !== undefined || undefined}
        aria-describedby={describe(id, frame)}
        onChange={(event) => onBytes(new TextEncoder().encode(event.target.value))}
        className={`${control} font-mono`}
      />
    </Frame>
  );
};
