// `dke endpoint`: key store endpoints, their settings and their credentials. Their request log:
// endpoint-requests.ts.

import type { Command } from 'commander';
import { command } from '../../base/command-line.ts';
import { takeMember } from '../../base/secret-member.ts';
import { operations } from '../../clients/typescript/gen/operations.ts';
import type { AuthorizationRule, EndpointSettings, ProxyConfiguration } from '../../contract/api/endpoints-routes.ts';
import { showSecret } from '../service/caller.ts';
import { addNoun, type Given, type Noun, secretFlags } from '../service/command-rows.ts';
import { CommandError } from '../terminal/exit-codes.ts';
import { readTextFile } from '../terminal/secret-files.ts';
import { addRequests } from './endpoint-requests.ts';

const routes = operations.endpoints;

/** The service checks what is in them. */
const readRules = (path: string): readonly AuthorizationRule[] => {
  try {
    return JSON.parse(readTextFile(path)) as readonly AuthorizationRule[];
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError('config', `${path} is not JSON`, {
      hint: 'a list of rules: [{"name": "no lambda", "effect": "deny", "when": {"viaService": ["lambda.*"]}}]',
    });
  }
};

const addCredential = (endpoint: Noun): void => {
  const noun = endpoint.noun('credential', 'SigV4 credentials');

  noun.act(
    'add <endpoint>',
    'Adds a credential, shown only once, as a proxy configuration file for AWS KMS.',
    secretFlags,
    ({ bytes, output }, options, id = '') =>
      showSecret(output, options, {
        operation: routes.addCredential,
        ask: () => bytes(routes.addCredential, { path: { id } }),
        read: (answer) => {
          const file = Buffer.concat([answer, Buffer.from('\n')]);
          takeMember(answer, 'RawSecretAccessKey', 2)?.fill(0);
          try {
            const { XksProxyUriPath, XksProxyAuthenticationCredential: credential } = JSON.parse(
              answer.toString('utf8'),
            ) as ProxyConfiguration;
            return { shown: { XksProxyUriPath, AccessKeyId: credential.AccessKeyId }, file };
          } catch (error) {
            file.fill(0);
            throw error;
          }
        },
      }),
  );
  noun.row(routes.get, 'list <endpoint>', 'Lists credentials; never their secrets.', {
    page: ({ credentials }) => ({ items: credentials }),
    columns: { ID: 'id', 'ACCESS KEY ID': 'accessKeyId', CREATED: 'createdAt', 'LAST USED': 'lastUsedAt' },
  });
  noun.row(
    routes.removeCredential,
    'remove <endpoint> <credential-id>',
    'Removes a credential. Requests that are signed with it are refused immediately.',
    {
      options: { '--force': 'remove it although the endpoint has no other: the cloud can no longer use the endpoint' },
      also: async ({ call }, { force }, id = '', credentialId = '') => {
        const { name, credentials } = await call(routes.get, { path: { id } });
        const isLast = credentials.length === 1 && credentials[0]?.id === credentialId;
        if (isLast && force !== true)
          throw new CommandError(
            'refused',
            `this is the last credential of the endpoint ${name}: nothing was changed`,
            {
              hint: `add another one and enter it in the cloud key store first (${command`dke endpoint credential add ${name}`}), or pass --force`,
            },
          );
        return {};
      },
      confirm: [
        routes.get,
        ({ name, credentials }, { credentialId }) => {
          const { accessKeyId, lastUsedAt = null } = credentials.find(({ id }) => id === credentialId) ?? {};
          const use = lastUsedAt === null ? 'it was never used' : `it was last used at ${lastUsedAt}`;
          return `Requests that are signed with ${accessKeyId ?? credentialId} are refused immediately; ${use} (endpoint ${name}).`;
        },
      ],
    },
  );
};

const probeFlags = {
  '--operator-probes': 'answer health to probes without a signature (the default)',
  '--no-operator-probes': 'require signed health probes',
} as const;
const settingsFlags = {
  '--rate <requests>': 'maximum number of requests per second; more are answered with 429',
  '--no-rate': 'no rate limit',
  '--burst <requests>': 'burst: maximum number of requests at one time after a pause; default: the rate of one second',
  '--client-ca <file>': 'mutual TLS: CA bundle (PEM) of the client certificates',
  '--client-name <name>': 'mutual TLS: common name of the client certificate',
  '--no-client-certificate': 'no mutual TLS',
  '--rules <file>': 'secondary authorization: a JSON file with a list of rules',
  '--no-rules': 'no rules: every signed request is allowed',
  ...probeFlags,
} as const;

/** What the options leave of the settings as they are, and what they put in. */
const changedSettings = (before: EndpointSettings, options: Given<typeof settingsFlags>): EndpointSettings => {
  const { operatorProbes = before.operatorProbes, rate, burst, clientCa, clientName, rules } = options;
  const perSecond = rate === undefined || rate === false ? before.rate?.perSecond : Number(rate);
  const newRate =
    rate === false || perSecond === undefined
      ? null
      : { perSecond, burst: Number(burst ?? (rate === undefined ? before.rate?.burst : Math.ceil(perSecond))) };
  const authorities = clientCa === undefined ? before.clientCertificate?.authorities : readTextFile(clientCa);
  const commonName = clientName ?? before.clientCertificate?.commonName;
  const clientCertificate =
    options.clientCertificate === false || (authorities === undefined && commonName === undefined)
      ? null
      : { authorities: authorities ?? '', commonName: commonName ?? '' };
  return {
    operatorProbes,
    rate: newRate,
    clientCertificate,
    rules: rules === undefined ? before.rules : rules === false ? [] : readRules(rules),
  };
};

const addRules = (noun: Noun): void => {
  noun.act(
    'set <endpoint>',
    'Changes settings of an endpoint, and shows them. Settings without an option are unchanged. Changes apply immediately.',
    settingsFlags,
    async ({ change, output }, options, id = '') => {
      const edit = ({ settings }: { readonly settings: EndpointSettings }) => changedSettings(settings, options);
      output.record((await change(routes.get, routes.changeSettings, { id }, edit)).settings);
    },
  );
  noun.act(
    'try-rules <endpoint>',
    'Tests the rules of an endpoint, or those in a file, with a request, and shows which rule decides. ' +
      'Changes nothing.',
    {
      '--operation <name>': { help: 'kmsOperation, such as Decrypt', required: true },
      '--principal <arn>': 'awsPrincipalArn',
      '--key <arn>': 'kmsKeyArn',
      '--vpc <id>': 'awsSourceVpc',
      '--vpc-endpoint <id>': 'awsSourceVpce',
      '--via-service <name>': 'kmsViaService',
      '--rules <file>': 'a JSON file with a list of rules that are not active yet',
    },
    async ({ call, output }, options, id = '') => {
      const request = {
        kmsOperation: options.operation,
        awsPrincipalArn: options.principal,
        kmsKeyArn: options.key,
        awsSourceVpc: options.vpc,
        awsSourceVpce: options.vpcEndpoint,
        kmsViaService: options.viaService,
      };
      const rules = options.rules === undefined ? {} : { rules: readRules(options.rules) };
      const { items } = await call(routes.simulateRules, { path: { id }, body: { requests: [request], ...rules } });
      for (const { passed, ...decision } of items) {
        if (output.raw) return output.record({ ...decision, passed });
        output.record(decision);
        if (passed.length > 0)
          output.list(
            { items: passed },
            { 'DOES NOT MATCH': 'rule', SUBJECT: 'subject', 'VALUE IN THE REQUEST': 'value' },
          );
      }
    },
  );
};

export const addEndpoint = (program: Command): void => {
  const noun = addNoun(program, 'endpoint');
  noun.row(routes.create, 'create <name>', 'Creates an endpoint for one key.', {
    options: {
      '--vault <vault>': { help: 'id or name of the vault', required: true },
      '--key <key>': { help: 'id or name of the key', required: true },
      '--prefix <prefix>': 'prefix of its path below /xks/; default: random',
      ...probeFlags,
    },
    also: (_, { operatorProbes }) => (operatorProbes === undefined ? {} : { body: { settings: { operatorProbes } } }),
  });
  noun.row(routes.list, 'list', 'Lists endpoints.', {
    columns: { ID: 'id', NAME: 'name', STATE: 'state', 'URI PATH': 'uriPath', KEY: 'keyId', 'KEY STATE': 'keyState' },
  });
  noun.row(routes.get, 'show <endpoint>', 'Shows an endpoint, by id or name.');
  noun.row(
    routes.rename,
    'rename <endpoint> <name>',
    'Renames an endpoint. Its prefix and credentials stay: the cloud notices nothing.',
  );
  noun.row(routes.enable, 'enable <endpoint>', 'Re-enables an endpoint.');
  noun.row(routes.disable, 'disable <endpoint>', 'Every request is refused until it is enabled again.');
  noun.row(routes.delete, 'delete <endpoint>', 'Deletes an endpoint. Its prefix is never used again; the key stays.', {
    confirm: [routes.get, ({ name, uriPath }) => `The cloud can no longer use ${uriPath} (endpoint ${name}).`],
  });
  addRequests(noun);
  addRules(noun);
  addCredential(noun);
};
