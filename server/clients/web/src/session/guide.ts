// Which page of the guide is about which page of the console; the service serves both. The longest
// beginning of the address counts.

const guides: readonly (readonly [beginning: string, page: string])[] = [
  ['/vaults', 'approvals'],
  ['/keys', 'root-key'],
  ['/tde', 'databases/oracle'],
  ['/connect/database', 'databases/oracle'],
  ['/runbooks', 'databases/oracle'],
  ['/connect/cloud', 'endpoints'],
  ['/endpoints', 'endpoints'],
  ['/external-key-stores', 'cloud'],
  ['/requests', 'endpoints'],
  ['/diagnostics', 'endpoints'],
  ['/audit', 'audit'],
  ['/approvals', 'approvals'],
  ['/snapshots', 'snapshots'],
  ['/users', 'people'],
  ['/sessions', 'people'],
  ['/profile', 'people'],
  ['/roles', 'roles'],
  ['/tokens', 'roles'],
  ['/reference', 'api'],
  ['/tenants', 'tenants'],
  ['/nodes', 'postgresql'],
  ['/settings', 'operations'],
  ['/setup', 'operations'],
  ['/notifications', 'notifications'],
];

/** The pages of the guide that some page of the console leads to. */
export const guidePages: readonly string[] = [...new Set(guides.map(([, page]) => page))];

/** The address of the guide for a page; its list of contents where there is none. */
export const guideOf = (path: string): string => {
  const found = guides.find(([beginning]) => path === beginning || path.startsWith(`${beginning}/`));
  return `/guide/${found?.[1] ?? 'index'}.html`;
};
