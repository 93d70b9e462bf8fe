// A goal and its measurement. A missed goal is reported; nothing is asserted.

export interface Verdict {
  readonly wanted: string;
  readonly measured: string;
  readonly met: boolean;
}

export const verdictText = ({ wanted, measured, met }: Verdict): string =>
  `${met ? 'met' : 'NOT MET'}: ${measured}, goal ${wanted}`;
