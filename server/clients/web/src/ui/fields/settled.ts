// What is typed, when typing pauses: a search asks for that, and not for each letter.

import { useEffect, useState } from 'react';

const pauseMs = 150;

export const useSettled = (text: string): string => {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), pauseMs);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
};
