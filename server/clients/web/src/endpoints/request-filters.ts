// The filters of the request log in its page's address.

export const requestFilters = [
  'result',
  'operation',
  'errorName',
  'principal',
  'kmsRequestId',
  'kmsOperation',
  'awsSourceVpc',
  'awsSourceVpce',
  'kmsViaService',
  'from',
  'to',
] as const;
export type RequestFilters = {
  readonly [name in (typeof requestFilters)[number] | 'endpointId']?: string | undefined;
};
