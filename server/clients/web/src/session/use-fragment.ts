// The fragment of the address, and a change of some of its words.

import { useLocation, useNavigate } from '@tanstack/react-router';
import { withWords } from './fragment.ts';

export const useFragment = (): readonly [string, (own: Readonly<Record<string, string | undefined>>) => void] => {
  const fragment = useLocation({ select: ({ hash }) => hash });
  const navigate = useNavigate();
  const change = (own: Readonly<Record<string, string | undefined>>): void =>
    void navigate({ to: '.', search: true, hash: withWords(fragment, own), replace: true, resetScroll: false });
  return [fragment, change];
};
