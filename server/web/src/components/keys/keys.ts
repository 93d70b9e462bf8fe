// The addresses of keys.

export const keysPath = '/api/keys';
export const keyPath = (id: string): string => `${keysPath}/${encodeURIComponent(id)}`;
