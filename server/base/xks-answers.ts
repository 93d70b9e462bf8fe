// What an answer of a proxy must contain, as the cloud reads it (External Key Store Proxy API 1.0).
// The simulated cloud, the doctor and the probe of external key stores read by the same rules.
// Ciphertexts are not here: who asked for one checks it.

type Members = Readonly<Record<string, unknown>>;

const mostFleetDetails = 10;
const mostKeyUsages = 10;
const healthStates: readonly unknown[] = ['ACTIVE', 'DEGRADED', 'UNAVAILABLE'];

const isFleetDetail = (value: unknown): boolean => {
  if (typeof value !== 'object' || value === null) return false;
  const { id, model, healthStatus } = value as Members;
  return typeof id === 'string' && typeof model === 'string' && healthStates.includes(healthStatus);
};

/** Why the cloud does not accept this answer to GetHealthStatus; undefined: it does. */
export const complaintOfHealth = (members: Members | undefined): string | undefined => {
  if (members === undefined) return 'it is not a JSON object';
  if (!Number.isInteger(members.xksProxyFleetSize) || Number(members.xksProxyFleetSize) < 1)
    return 'xksProxyFleetSize is not a whole number above 0';
  for (const name of ['xksProxyVendor', 'xksProxyModel', 'ekmVendor'])
    if (typeof members[name] !== 'string') return `${name} is missing`;
  const { ekmFleetDetails: details } = members;
  if (!Array.isArray(details) || details.length < 1 || details.length > mostFleetDetails)
    return `ekmFleetDetails does not have 1 to ${mostFleetDetails} entries`;
  return details.every(isFleetDetail) ? undefined : 'an entry of ekmFleetDetails is incomplete';
};

/** Whether an answer to GetHealthStatus says that no key manager can be used. */
export const hasNoKeyManager = ({ ekmFleetDetails }: Members): boolean =>
  Array.isArray(ekmFleetDetails) &&
  ekmFleetDetails.every((each: Members | null) => each?.healthStatus === 'UNAVAILABLE');

/** Why the cloud does not accept this answer to GetKeyMetadata; undefined: it does. */
export const complaintOfMetadata = (members: Members | undefined): string | undefined => {
  if (members === undefined) return 'it is not a JSON object';
  const { keySpec, keyUsage, keyStatus } = members;
  for (const [name, value] of Object.entries({ keySpec, keyStatus }))
    if (typeof value !== 'string') return `${name} is missing`;
  return Array.isArray(keyUsage) &&
    keyUsage.length <= mostKeyUsages &&
    keyUsage.every((each) => typeof each === 'string')
    ? undefined
    : `keyUsage is not a list of up to ${mostKeyUsages} texts`;
};

/** Why the cloud makes no KMS key of this key; undefined: it does. */
export const unusableKey = ({ keySpec, keyUsage, keyStatus }: Members): string | undefined => {
  const usages: readonly unknown[] = Array.isArray(keyUsage) ? keyUsage : [];
  if (keySpec !== 'AES_256' || !usages.includes('ENCRYPT') || !usages.includes('DECRYPT'))
    return 'the external key is not an AES-256 key for encryption and decryption';
  return keyStatus === 'ENABLED' ? undefined : 'the external key is not enabled';
};
