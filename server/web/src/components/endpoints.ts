// The addresses of key store endpoints.

export const endpointsPath = '/api/endpoints';
export const endpointPath = (id: string): string => `${endpointsPath}/${encodeURIComponent(id)}`;
