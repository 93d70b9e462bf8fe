// Settings of a key store endpoint: rate, client certificate, secondary authorization, operators'
// probes. They replace the old ones as a whole, and hold from the next request on.

import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { ServiceError } from '../../base/service-error.ts';
import type { AuditValue } from '../../domain/audit-event.ts';
import { countSearches, mostSearches } from '../../domain/authorization-rule.ts';
import { defaultSettings, type Endpoint, type EndpointSettings } from '../../domain/endpoint.ts';
import type { Ports } from '../../ports/ports.ts';
import type { ServiceIdentity } from '../../ports/service-identity.ts';
import { findEndpoint } from '../shared/find.ts';
import { checkName } from '../shared/names.ts';
import { about, recordEvent } from '../shared/record-event.ts';
import type { EndpointCall, EndpointOperations } from './endpoints-operations.ts';

const certificateShape = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
const mostAuthorities = 20;

/** The certificates of a PEM bundle; text around them is passed over. Throws 'validation'. */
const readAuthorities = (bundle: string): readonly X509Certificate[] => {
  const blocks = bundle.match(certificateShape) ?? [];
  if (blocks.length < 1 || blocks.length > mostAuthorities)
    throw new ServiceError('validation', `a CA bundle must have 1 to ${mostAuthorities} certificates in PEM`);
  const certificates = blocks.map((block, index) => {
    const which = `certificate ${index + 1} of the CA bundle`;
    let certificate: X509Certificate;
    try {
      certificate = new X509Certificate(block);
    } catch (error) {
      throw new ServiceError('validation', `${which} cannot be read`, { cause: error });
    }
    if (!certificate.ca)
      throw new ServiceError('validation', `${which} is not a CA certificate`, {
        hint: 'use the certificates of the authority that issues the client certificates, and of all above it',
      });
    return certificate;
  });
  for (const [index, certificate] of certificates.entries())
    if (!certificates.some((issuer) => certificate.checkIssued(issuer)))
      throw new ServiceError('validation', `the issuer of certificate ${index + 1} is not in the CA bundle`, {
        hint: `add ${certificate.issuer.replaceAll('\n', ', ')}, and all above it up to the root`,
      });
  return certificates;
};

/** The settings with the defaults for those that are absent. */
export const withDefaults = (
  given: NonNullable<Parameters<EndpointOperations['create']>[1]['settings']>,
): EndpointSettings => ({
  operatorProbes: given.operatorProbes ?? defaultSettings.operatorProbes,
  rate: given.rate ?? defaultSettings.rate,
  clientCertificate: given.clientCertificate ?? defaultSettings.clientCertificate,
  rules: given.rules ?? defaultSettings.rules,
});

/** An incomplete ARN would be compared with the whole text, and its `*` would cross the fields. */
const checkArnPatterns = (rules: EndpointSettings['rules']): void => {
  for (const { name, when } of rules)
    for (const pattern of [...(when.principal ?? []), ...(when.key ?? [])])
      if (pattern.startsWith('arn:') && pattern.split(':').length < 6)
        throw new ServiceError('validation', `the rule ${name} has an incomplete ARN: ${pattern}`, {
          hint: 'write all six fields, for example arn:aws:iam::111122223333:role/*',
        });
};

/** `before`: not more than these is not refused, so that all else of an endpoint can be changed. */
const checkSearches = (rules: EndpointSettings['rules'], before: EndpointSettings['rules']): void => {
  const searches = countSearches(rules);
  if (searches > Math.max(mostSearches, countSearches(before)))
    throw new ServiceError(
      'validation',
      `${searches} patterns of the rules search the text of a request: at most ${mostSearches} may`,
      {
        hint: 'write patterns with their beginning or their end, for example arn:aws:iam::111122223333:role/app/* instead of *app*',
      },
    );
};

/**
 * What the request log names is one rule, people read it as it is, and requests have time for all.
 * `before`: the active rules, which keep what earlier versions took, while they stay what they are.
 * Throws 'validation'.
 */
export const checkRules = (
  rules: EndpointSettings['rules'],
  before: EndpointSettings['rules'] = defaultSettings.rules,
): void => {
  for (const rule of rules) if (!before.some((each) => isDeepStrictEqual(each, rule))) checkName(rule.name);
  const names = rules.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new ServiceError('validation', `two rules have the name ${twice}`);
  checkSearches(rules, before);
};
/** Throws 'validation', or 'conflict' where the listener does not ask for client certificates. */
export const checkEndpointSettings = (settings: EndpointSettings, identity: ServiceIdentity): void => {
  checkArnPatterns(settings.rules);
  if (settings.clientCertificate === null) return;
  readAuthorities(settings.clientCertificate.authorities);
  if (!identity.asksClientCertificates)
    throw new ServiceError('conflict', 'this service does not request client certificates', {
      hint: 'set tls.client_certificates = true in dke.toml and restart the service',
    });
};

/** What the audit log says: fingerprints instead of certificates. */
const describe = ({ operatorProbes, rate, clientCertificate, rules }: EndpointSettings) => ({
  operatorProbes,
  rate,
  clientCertificate:
    clientCertificate === null
      ? null
      : {
          commonName: clientCertificate.commonName,
          authorities: readAuthorities(clientCertificate.authorities).map(({ fingerprint256 }) => fingerprint256),
        },
  rules: rules.map(
    ({ name, effect, when }): AuditValue => ({
      name,
      effect,
      when: Object.fromEntries(Object.entries(when).map(([subject, patterns = []]) => [subject, patterns])),
    }),
  ),
});

export const changeEndpointSettings =
  ({ store, directory, identity }: Pick<Ports, 'store' | 'directory' | 'identity'>): EndpointCall<'changeSettings'> =>
  async (actor, id, settings) => {
    checkEndpointSettings(settings, identity);
    const endpoint = await store.write(async (tx): Promise<Endpoint> => {
      const before = await findEndpoint(tx, actor.tenantId, id);
      checkRules(settings.rules, before.settings.rules);
      if (before.state === 'deleted') throw new ServiceError('conflict', 'the endpoint is deleted');
      const after: Endpoint = { ...before, settings };
      await tx.endpoints.update(after);
      await recordEvent(tx, 'endpoint.settings-changed', actor, about('endpoint', after), {
        name: after.name,
        ...describe(settings),
      });
      return after;
    });
    await directory.renew({ endpoints: [id] });
    return endpoint;
  };
