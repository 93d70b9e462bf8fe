// The request log of key store endpoints: the conditions of a search in it. Texts are compared byte
// for byte.

export interface RequestFilter {
  /** Null: requests that met no endpoint. */
  readonly endpointId?: string | null | undefined;
  readonly operation?: string | undefined;
  readonly result?: RequestResult | undefined;
  /** Whether its signature was valid. */
  readonly signed?: boolean | undefined;
  readonly status?: number | undefined;
  readonly errorName?: string | undefined;
  readonly kmsOperation?: string | undefined;
  /** `*` at the end: any that begin with what comes before it. */
  readonly principal?: string | undefined;
  /** `*` at the end: any that begin with what comes before it. */
  readonly kmsKeyArn?: string | undefined;
  readonly awsSourceVpc?: string | undefined;
  readonly awsSourceVpce?: string | undefined;
  readonly kmsViaService?: string | undefined;
  readonly externalKeyId?: string | undefined;
  readonly requestId?: string | undefined;
  readonly kmsRequestId?: string | undefined;
  /** Milliseconds since the epoch, inclusive. */
  readonly from?: number | undefined;
  /** Exclusive. */
  readonly to?: number | undefined;
}

export type RequestResult = 'answered' | 'refused';

/** The meaning of a pattern with an optional `*` at its end. */
export const readPattern = (pattern: string): { readonly text: string; readonly prefix: boolean } =>
  pattern.endsWith('*') ? { text: pattern.slice(0, -1), prefix: true } : { text: pattern, prefix: false };
