// Asks for an erasure turn. Destructions that come close together share one.

export interface ErasureTurns {
  schedule(): void;
}
