// How long OpenSSL corrects the series of libcrypto that the core can be linked with
// (openssl-library.org/policies/releasestrat).

/** Last day, by series. */
const supportedUntil: Readonly<Record<string, string>> = { '3.5': '2030-04-08', '4.0': '2027-05-14' };

/** Undefined: a series that is not known here. */
export const endOfSupport = (version: string): string | undefined =>
  supportedUntil[version.split('.').slice(0, 2).join('.')];
