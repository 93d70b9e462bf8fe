// What a call comes to: the code of its error, or 'none'.
interface Coded {
  readonly code?: string;
}

export const codeOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    return (error as Coded).code ?? String(error);
  }
  return 'none';
};

export const codeOfWork = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'none',
    (error: Coded) => error.code ?? String(error),
  );
