// The addresses of TDE applications.

export const applicationsPath = '/api/tde/applications';
export const applicationPath = (id: string): string => `${applicationsPath}/${encodeURIComponent(id)}`;
