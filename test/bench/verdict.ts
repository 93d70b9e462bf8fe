// A goal and what was measured of it. A goal that is missed is said to be missed; nothing is asserted.

export interface Verdict {
  readonly wanted: string;
  readonly measured: string;
  readonly met: boolean;
}

export const verdictText = ({ wanted, measured, met }: Verdict): string =>
  `${met ? 'met' : 'NOT MET'}: ${measured}, goal ${wanted}`;
