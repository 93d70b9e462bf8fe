// Filters above a list. They are part of the address, so that a filtered list can be bookmarked,
// sent, and reached with "Back".

import { type ReactNode, useEffect, useId, useState, useSyncExternalStore } from 'react';
import { Dialog, DialogActions } from '../forms/dialog.tsx';
import { Button } from '../page/button.tsx';
import type { Choice } from './field.tsx';
import { toEntered, toMoment } from './moments.ts';
import { PickField, type PickFieldProps } from './pick-field.tsx';
import { useZone, zoneName } from './zone.tsx';

const control =
  'min-h-9 w-full rounded-md border border-line-strong/70 bg-surface px-2.5 py-1 text-sm text-ink placeholder:text-muted';

const narrow = '(max-width: 39.99rem)';
const watchWidth = (tell: () => void): (() => void) => {
  const query = matchMedia(narrow);
  query.addEventListener('change', tell);
  return () => query.removeEventListener('change', tell);
};
const useIsNarrow = (): boolean => useSyncExternalStore(watchWidth, () => matchMedia(narrow).matches);

interface FilterBarProps {
  readonly active: boolean;
  readonly onClear: () => void;
  readonly children: ReactNode;
}

export const FilterBar = (props: FilterBarProps) =>
  useIsNarrow() ? <FilterSheet {...props} /> : <FilterRow {...props} />;

const FilterRow = ({ active, onClear, children }: FilterBarProps) => (
  <search className="flex items-end gap-3 border-b border-line px-4 py-3">
    <div className="grid min-w-0 flex-1 gap-3 sm:grid-cols-[repeat(auto-fill,minmax(10.5rem,1fr))]">{children}</div>
    {active && (
      <Button tone="quiet" icon="close" onClick={onClear}>
        Clear
      </Button>
    )}
  </search>
);

/** On small screens the filters would push the list out of sight. */
const FilterSheet = ({ active, onClear, children }: FilterBarProps) => {
  const [isOpen, setOpen] = useState(false);
  return (
    <search className="flex items-center gap-2 border-b border-line px-4 py-2">
      <Button icon="filter" opens onClick={() => setOpen(true)}>
        {active ? 'Filters (active)' : 'Filters'}
      </Button>
      {active && (
        <Button tone="quiet" icon="close" onClick={onClear}>
          Clear
        </Button>
      )}
      {isOpen && (
        <Dialog title="Filters" onClose={() => setOpen(false)}>
          <div className="grid gap-3">{children}</div>
          <DialogActions>
            <Button tone="primary" onClick={() => setOpen(false)}>
              Show the list
            </Button>
          </DialogActions>
        </Dialog>
      )}
    </search>
  );
};

/** A resource, chosen by its name; the address has its id. An id can be pasted, too. */
export const PickFilter = ({
  label,
  value,
  kind,
  choices = [],
  onValue,
}: {
  label: string;
  value: string | undefined;
  kind?: PickFieldProps['kind'];
  choices?: readonly Choice[];
  onValue: (value: string | undefined) => void;
}) => (
  <PickField
    label={label}
    optional
    anyId
    compact
    {...(kind === undefined ? {} : { kind })}
    value={value ?? ''}
    choices={choices}
    placeholder="Its name, or its id"
    onValue={(next) => onValue(next === '' ? undefined : next)}
  />
);

export const SelectFilter = ({
  label,
  value,
  every = 'All',
  choices,
  onValue,
}: {
  label: string;
  value: string | undefined;
  /** Text while nothing is selected. */
  every?: string;
  choices: readonly Choice[];
  onValue: (value: string | undefined) => void;
}) => {
  const id = useId();
  return (
    <div className="min-w-0">
      <label htmlFor={id} className="mb-0.5 block text-xs text-muted">
        {label}
      </label>
      <select
        id={id}
        value={value ?? ''}
        onChange={(event) => onValue(event.target.value === '' ? undefined : event.target.value)}
        className={control}
      >
        <option value="">{every}</option>
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.text}
          </option>
        ))}
      </select>
    </div>
  );
};

const settleAfter = 350;

/** A moment, in the zone that was chosen; the address has it with its zone. */
export const MomentFilter = ({
  label,
  value,
  onValue,
}: {
  /** "From", "To". */
  label: string;
  value: string | undefined;
  onValue: (value: string | undefined) => void;
}) => {
  const zone = useZone();
  const entered = value === undefined ? undefined : toEntered(value, zone);
  return (
    <div className="min-w-0">
      <TextFilter
        label={`${label} (${zoneName(zone)})`}
        type="datetime-local"
        value={entered}
        onValue={(text) => onValue(text === undefined ? undefined : toMoment(text, zone))}
      />
      {value !== undefined && entered === undefined && (
        <p role="alert" className="mt-0.5 text-xs wrap-anywhere text-danger">
          “{value}” is not a time with a zone.
        </p>
      )}
    </div>
  );
};

/** A text filter; it takes effect when typing pauses, or at once with Enter. */
export const TextFilter = ({
  label,
  value,
  placeholder,
  type = 'search',
  onValue,
}: {
  label: string;
  value: string | undefined;
  placeholder?: string;
  type?: 'search' | 'datetime-local';
  onValue: (value: string | undefined) => void;
}) => {
  const id = useId();
  const [draft, setDraft] = useState(value ?? '');
  useEffect(() => setDraft(value ?? ''), [value]);
  const apply = (next: string): void => {
    const wanted = next.trim() === '' ? undefined : next.trim();
    if (wanted !== value) onValue(wanted);
  };
  useEffect(() => {
    if (draft.trim() === (value ?? '')) return undefined;
    const timer = setTimeout(() => apply(draft), settleAfter);
    return () => clearTimeout(timer);
  });
  return (
    <div className="min-w-0">
      <label htmlFor={id} className="mb-0.5 block text-xs text-muted">
        {label}
      </label>
      <input
        id={id}
        type={type}
        value={draft}
        placeholder={placeholder}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setDraft(event.target.value)}
        onBlur={() => apply(draft)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') apply(draft);
        }}
        className={control}
      />
    </div>
  );
};
