// The addresses of the resources that more than one page asks for.

export const applicationsPath = '/api/tde/applications';
export const applicationPath = (id: string): string => `${applicationsPath}/${encodeURIComponent(id)}`;
export const endpointsPath = '/api/endpoints';
export const endpointPath = (id: string): string => `${endpointsPath}/${encodeURIComponent(id)}`;
export const groupsPath = '/api/tde/groups';
export const keysPath = '/api/keys';
export const keyPath = (id: string): string => `${keysPath}/${encodeURIComponent(id)}`;
export const nodesPath = '/api/nodes';
export const notificationsPath = '/api/notifications';
export const setupPath = '/api/setup';
export const snapshotsPath = '/api/snapshots';
export const snapshotPath = (id: string): string => `${snapshotsPath}/${encodeURIComponent(id)}`;
export const usersPath = '/api/users';
export const userPath = (id: string): string => `${usersPath}/${encodeURIComponent(id)}`;
export const vaultsPath = '/api/vaults';
export const vaultPath = (id: string): string => `${vaultsPath}/${encodeURIComponent(id)}`;
