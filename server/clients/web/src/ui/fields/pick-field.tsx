// One resource of any number: a field that finds it by its name (the combobox pattern of the ARIA
// Authoring Practices). What is typed is only a search; the value is what was chosen from the list.

import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { type ApiCall, send } from '../../api/client.ts';
import type { SearchResult } from '../../api/types.ts';
import { useUnsaved } from '../forms/unsaved.tsx';
import { LongName } from '../page/long-name.tsx';
import { type Choice, control, describe, type FieldFrame, Frame } from './field.tsx';
import { useSettled } from './settled.ts';

/** More are found by more of the name. */
const mostShown = 100;

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const wordsOf = (text: string): readonly string[] => text.trim().toLowerCase().split(/\s+/);
const fits = (text: string, words: readonly string[]): boolean =>
  words.every((word) => text.toLowerCase().includes(word));

/** What the service finds by name beside the choices that are known. */
const useFound = (kind: SearchKind | 'any' | undefined, text: string): readonly Choice[] => {
  const asked = useSettled(text.trim()).slice(0, 200);
  const call: ApiCall = {
    method: 'GET',
    path: '/api/search',
    query: { ...(kind === 'any' ? {} : { kind }), q: asked, limit: mostShown },
  };
  const { data } = useQuery({
    queryKey: ['/api/search', kind, asked],
    queryFn: ({ signal }) => send<SearchResult>(call, { signal }),
    enabled: kind !== undefined && /[\p{L}\p{N}]/u.test(asked),
    staleTime: 10_000,
  });
  return (data?.items ?? []).map(({ id, name }) => ({ value: id, text: name }));
};

type SearchKind = SearchResult['items'][number]['kind'];

export interface PickFieldProps extends FieldFrame {
  /** The id that was chosen; empty: none. */
  readonly value: string;
  readonly onValue: (value: string) => void;
  /** All, or with `kind` the first ones. */
  readonly choices: readonly Choice[];
  /** Adds what the service finds of this kind to the choices; `any`: of every kind. */
  readonly kind?: SearchKind | 'any';
  /** Any id may be entered, also one that is not found: of what was deleted. */
  readonly anyId?: boolean;
  /** Compact form, for a filter above a list. */
  readonly compact?: boolean;
  readonly placeholder?: string;
  readonly disabled?: boolean;
}

export const PickField = ({
  label,
  help,
  fault,
  optional = false,
  value,
  onValue,
  choices,
  kind,
  placeholder,
  disabled = false,
  anyId = false,
  compact = false,
}: PickFieldProps) => {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const unsaved = useUnsaved();
  const frame = { label, help, fault, optional };
  /** What is typed; null: the list is closed, and the field shows what was chosen. */
  const [typed, setTyped] = useState<string | null>(null);
  const [at, setAt] = useState(0);
  const [chosen, setChosen] = useState<Choice | null>(null);
  const found = useFound(kind, typed ?? '');
  const known = chosen?.value === value ? chosen : choices.find((choice) => choice.value === value);
  const all = [...choices, ...found.filter((each) => choices.every((choice) => choice.value !== each.value))];
  const words = wordsOf(typed ?? '');
  const fitting = all.filter(
    ({ text, value: own }) => fits(`${text} ${own}`, words) || found.some((each) => each.text === text),
  );
  const shown = fitting.slice(0, mostShown);
  const isOpen = typed !== null;
  const here = Math.min(at, shown.length - 1);
  useEffect(() => {
    const isMissing = !optional && value === '';
    input.current?.setCustomValidity(isMissing ? `Choose one from the list of ${label}` : '');
  }, [optional, value, label]);
  const close = (): void => {
    setTyped(null);
    setAt(0);
  };
  const choose = (choice: Choice | undefined): void => {
    if (choice === undefined || choice.disabled === true) return;
    unsaved?.note();
    setChosen(choice);
    onValue(choice.value);
    close();
  };
  /** The only name that fits, or the name itself, need not be chosen with a further key. */
  const leave = (): void => {
    const exact = shown.find(({ text }) => text === typed?.trim());
    if (typed === '' && optional) onValue('');
    else if (exact !== undefined) choose(exact);
    else if (anyId && typed !== null && uuid.test(typed.trim())) onValue(typed.trim());
    close();
  };
  const press = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      if (!isOpen) setTyped('');
      else if (shown.length > 0) setAt((here + step + shown.length) % shown.length);
    }
    if (!isOpen) return;
    if (event.key === 'Enter') {
      event.preventDefault();
      if (shown[here] === undefined) leave();
      else choose(shown[here]);
    }
    if (event.key === 'Escape') {
      // The list closes, and not the dialog around it.
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };
  return (
    <Frame id={id} {...frame} compact={compact}>
      <div className="relative">
        <input
          ref={input}
          id={id}
          type="text"
          role="combobox"
          aria-expanded={isOpen}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={isOpen && shown.length > 0 ? `${id}-${here}` : undefined}
          aria-invalid={fault !== undefined || undefined}
          aria-describedby={describe(id, frame)}
          aria-required={!optional}
          autoComplete="off"
          spellCheck={false}
          disabled={disabled}
          placeholder={known === undefined ? placeholder : undefined}
          value={typed ?? known?.text ?? value}
          onChange={(event) => {
            setTyped(event.target.value);
            setAt(0);
          }}
          onClick={() => setTyped((was) => was ?? '')}
          onBlur={leave}
          onKeyDown={press}
          className={control}
        />
        {isOpen && <Options id={id} label={label} shown={shown} here={here} onChoose={choose} />}
        <p role="status" className={isOpen ? 'mt-1 text-xs text-muted' : 'sr-only'}>
          {isOpen &&
            (fitting.length > mostShown ? `The first ${mostShown}. Type more of the name.` : countOf(fitting.length))}
        </p>
      </div>
    </Frame>
  );
};

interface OptionsProps {
  readonly id: string;
  readonly label: string;
  readonly shown: readonly Choice[];
  /** The position of the one that Enter chooses. */
  readonly here: number;
  readonly onChoose: (choice: Choice) => void;
}

const Options = ({ id, label, shown, here, onChoose }: OptionsProps) => (
  <div
    id={`${id}-list`}
    role="listbox"
    aria-label={label}
    className="absolute z-10 mt-1 max-h-60 w-full overflow-y-auto rounded-md border border-line-strong bg-raised shadow-float"
  >
    {shown.map((choice, index) => (
      <div
        key={choice.value}
        id={`${id}-${index}`}
        role="option"
        tabIndex={-1}
        aria-selected={index === here}
        aria-disabled={choice.disabled}
        ref={index === here ? intoView : undefined}
        // Before the field loses the focus.
        onMouseDown={(event) => {
          event.preventDefault();
          onChoose(choice);
        }}
        className={`cursor-pointer px-3 py-2 wrap-anywhere aria-disabled:text-muted ${index === here ? 'bg-accent-soft' : 'hover:bg-hover'}`}
      >
        <LongName>{choice.text}</LongName>
      </div>
    ))}
  </div>
);

const countOf = (number: number): string =>
  number === 0 ? 'No match. Type the start of a word in the name.' : `${number} to choose from`;

const intoView = (element: HTMLElement | null): void => element?.scrollIntoView({ block: 'nearest' });
