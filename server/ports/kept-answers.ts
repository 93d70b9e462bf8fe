// What the store keeps of requests under an `Idempotency-Key`.

import type { Integrity } from '../domain/vault.ts';

export interface KeptAnswer {
  readonly location: string;
  /** Null when the answer showed a secret. */
  readonly body: string | null;
}

export interface StoredRequest {
  /** Digest of who asks and of the key. */
  readonly id: string;
  /** Digest of what is asked: the same key with another request is refused. */
  readonly fingerprint: string;
  readonly requestId: string;
  /** Who carries it out: a node, and when it was started. */
  readonly run: string;
  readonly createdAt: number;
  /** Null: it is under way still, or its node ended before it could write the answer down. */
  readonly answer: KeptAnswer | null;
  readonly integrity: Integrity;
}

export interface IdempotencyRepository {
  get(id: string): Promise<StoredRequest | undefined>;
  /** Answers false when there is one of this id. */
  insert(request: StoredRequest): Promise<boolean>;
  update(request: StoredRequest): Promise<void>;
  remove(id: string): Promise<void>;
}
