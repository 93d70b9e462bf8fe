// Texts of the service, which begin small and end without a point, as sentences of a page.

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const sentence = (text: string): string => {
  const trimmed = text.trim();
  return trimmed === '' || /[.!?]$/.test(trimmed) ? capital(trimmed) : `${capital(trimmed)}.`;
};
