// The diagnostics of one key store endpoint, as operations see them.

import type { CheckResult, CheckWatch } from '../base/diagnostic-checks.ts';

/** The configuration of the cloud side; absent members were not given. */
export interface CloudSide {
  readonly uriEndpoint?: string | undefined;
  readonly uriPath?: string | undefined;
  readonly accessKeyId?: string | undefined;
  readonly externalKeyId?: string | undefined;
}

export interface DiagnosisRequest {
  /** The clock of the caller, in milliseconds since 1970. */
  readonly callerTime: number | null;
  readonly cloud: CloudSide;
}

export interface Diagnosis {
  readonly results: readonly CheckResult[];
  /** Ids of the requests that were made for it. */
  readonly requestIds: readonly string[];
}

export interface EndpointDiagnosis {
  /** `ownRequests`: ids of requests that earlier diagnoses made, which say nothing of the cloud. */
  run(
    endpointId: string,
    request: DiagnosisRequest,
    ownRequests: ReadonlySet<string>,
    watch?: CheckWatch,
  ): Promise<Diagnosis>;
}
