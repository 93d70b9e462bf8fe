// `dke endpoint`: key store endpoints, their settings and their credentials. Their request log: endpoint-requests.ts.

import type { Command } from 'commander';
import { takeMember } from '../base/secret-member.ts';
import type { AuthorizationRule, EndpointSettings, ProxyConfiguration } from '../fronts/contract/api/endpoints.ts';
import { apiRoutes } from '../fronts/contract/api/index.ts';
import { action, type Paging, paged, type SecretTarget, secretTarget, showSecret } from './caller.ts';
import { addRequests } from './endpoint-requests.ts';
import { CommandError } from './exit-codes.ts';
import { readTextFile } from './files.ts';
import { confirm } from './output.ts';

const routes = apiRoutes.endpoints;

/** The service checks what stands in them. */
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

const addCredential = (endpoint: Command): void => {
  const noun = endpoint.command('credential').summary('SigV4 credentials');

  secretTarget(
    noun
      .command('add <endpoint>')
      .description('Adds a credential, shown this once, as the proxy configuration file that AWS KMS takes.'),
  ).action(
    action<SecretTarget>(async ({ bytes, output, resolve }, options, endpoint) => {
      const path = { id: await resolve('endpoint', endpoint) };
      await showSecret(output, options, async () => {
        const answer = await bytes(routes.addCredential, { path });
        const file = Buffer.concat([answer, Buffer.from('\n')]);
        takeMember(answer, 'RawSecretAccessKey', 2)?.fill(0);
        const rest = JSON.parse(answer.toString('utf8')) as ProxyConfiguration;
        const { XksProxyUriPath, XksProxyAuthenticationCredential: credential } = rest;
        return { shown: { XksProxyUriPath, AccessKeyId: credential.AccessKeyId }, file };
      });
    }),
  );

  noun
    .command('list <endpoint>')
    .description('Lists credentials; never their secrets.')
    .action(
      action(async ({ call, output, resolve }, _, endpoint) => {
        const { credentials } = await call(routes.get, { path: { id: await resolve('endpoint', endpoint) } });
        output.list({ items: credentials }, [
          ['ID', (row) => row.id],
          ['ACCESS KEY ID', (row) => row.accessKeyId],
          ['CREATED', (row) => row.createdAt],
          ['LAST USED', (row) => row.lastUsedAt],
        ]);
      }),
    );

  noun
    .command('remove <endpoint> <credential-id>')
    .description('Removes a credential: what it signs is refused from now on.')
    .action(
      action(async ({ call, output, resolve }, _, endpoint, credentialId) => {
        const path = { id: await resolve('endpoint', endpoint), credentialId };
        output.record(await call(routes.removeCredential, { path }));
      }),
    );
};

interface SettingsOptions {
  readonly operatorProbes?: boolean;
  readonly rate?: string | false;
  readonly burst?: string;
  readonly clientCa?: string;
  readonly clientName?: string;
  readonly clientCertificate?: false;
  readonly rules?: string | false;
}

/** What the options leave of the settings as they are, and what they put in. */
const changedSettings = (before: EndpointSettings, options: SettingsOptions): EndpointSettings => {
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

const addSettings = (endpoint: Command): void => {
  endpoint
    .command('set <endpoint>')
    .description('Changes settings of an endpoint, and shows them. Those that no option names stay; they hold at once.')
    .option('--rate <requests>', 'at most so many requests a second; more are answered 429')
    .option('--no-rate', 'no such limit')
    .option('--burst <requests>', 'so many at once after a pause; one second of the rate when absent')
    .option('--client-ca <file>', 'mutual TLS: CA bundle (PEM) of the client certificates')
    .option('--client-name <name>', 'mutual TLS: common name of the client certificate')
    .option('--no-client-certificate', 'no mutual TLS')
    .option('--rules <file>', 'secondary authorization: a JSON file with a list of rules')
    .option('--no-rules', 'no rules: all that is signed is allowed')
    .option('--operator-probes', 'answer health to probes without a signature')
    .option('--no-operator-probes', 'want a signature of probes too')
    .action(
      action<SettingsOptions>(async ({ change, output, resolve }, options, name) => {
        const path = { id: await resolve('endpoint', name) };
        const edit = ({ settings }: { readonly settings: EndpointSettings }) => changedSettings(settings, options);
        output.record((await change(routes.get, routes.changeSettings, path, edit)).settings);
      }),
    );
};

interface TryOptions {
  readonly operation: string;
  readonly principal?: string;
  readonly key?: string;
  readonly vpc?: string;
  readonly vpcEndpoint?: string;
  readonly viaService?: string;
  readonly rules?: string;
}

const addTryRules = (endpoint: Command): void => {
  endpoint
    .command('try-rules <endpoint>')
    .description(
      'Tells what the rules of an endpoint say to a request, and which rule decides: those that hold, or those in a file. ' +
        'Changes nothing.',
    )
    .requiredOption('--operation <name>', 'kmsOperation, such as Decrypt')
    .option('--principal <arn>', 'awsPrincipalArn')
    .option('--key <arn>', 'kmsKeyArn')
    .option('--vpc <id>', 'awsSourceVpc')
    .option('--vpc-endpoint <id>', 'awsSourceVpce')
    .option('--via-service <name>', 'kmsViaService')
    .option('--rules <file>', 'a JSON file with a list of rules that are not in force yet')
    .action(
      action<TryOptions>(async ({ call, output, resolve }, options, name) => {
        const path = { id: await resolve('endpoint', name) };
        const request = {
          kmsOperation: options.operation,
          awsPrincipalArn: options.principal,
          kmsKeyArn: options.key,
          awsSourceVpc: options.vpc,
          awsSourceVpce: options.vpcEndpoint,
          kmsViaService: options.viaService,
        };
        const rules = options.rules === undefined ? {} : { rules: readRules(options.rules) };
        const { items } = await call(routes.simulateRules, { path, body: { requests: [request], ...rules } });
        for (const { passed, ...decision } of items) {
          if (output.format === 'json') return output.record({ ...decision, passed });
          output.record(decision);
          if (passed.length > 0)
            output.list({ items: passed }, [
              ['DOES NOT FIT', (row) => row.rule],
              ['BECAUSE OF', (row) => row.subject],
              ['WHICH IS', (row) => row.told],
            ]);
        }
      }),
    );
};

export const addEndpoint = (program: Command): void => {
  const noun = program.command('endpoint').summary('key store endpoints: what a cloud key service calls');

  noun
    .command('create <name>')
    .description('Makes an endpoint for one key.')
    .requiredOption('--vault <vault>', 'id or name of the vault')
    .requiredOption('--key <key>', 'id or name of the key')
    .option('--prefix <prefix>', 'of its path below /xks/; made at random when absent')
    .option('--operator-probes', 'answer health to probes without a signature (the default)')
    .option('--no-operator-probes', 'want a signature of probes too')
    .action(
      action<{
        readonly vault: string;
        readonly key: string;
        readonly prefix?: string;
        readonly operatorProbes?: boolean;
      }>(async ({ call, output, resolve }, { vault, key, operatorProbes, ...options }, name) => {
        const settings = operatorProbes === undefined ? {} : { settings: { operatorProbes } };
        const body = {
          name,
          vaultId: await resolve('vault', vault),
          keyId: await resolve('key', key),
          ...options,
          ...settings,
        };
        output.record(await call(routes.create, { body }));
      }),
    );

  paged(noun.command('list').description('Lists endpoints.')).action(
    action<Paging>(async ({ call, output }, query) => {
      output.list(await call(routes.list, { query: { ...query } }), [
        ['ID', (row) => row.id],
        ['NAME', (row) => row.name],
        ['STATE', (row) => row.state],
        ['URI PATH', (row) => row.uriPath],
        ['KEY', (row) => row.keyId],
      ]);
    }),
  );

  for (const [verb, description] of [
    ['get', 'Shows an endpoint, by id or name.'],
    ['enable', 'Takes an endpoint into use again.'],
    ['disable', 'Every request is refused until it is enabled again.'],
  ] as const)
    noun
      .command(`${verb} <endpoint>`)
      .description(description)
      .action(
        action(async ({ call, output, resolve }, _, endpoint) => {
          output.record(await call(routes[verb], { path: { id: await resolve('endpoint', endpoint) } }));
        }),
      );

  noun
    .command('delete <endpoint>')
    .description('Deletes an endpoint. Its prefix is never given again; the key stays.')
    .option('--confirm <name>', 'the name of the endpoint, to go on without a question')
    .action(
      action<{ readonly confirm?: string }>(async ({ call, output, resolve }, options, endpoint) => {
        const path = { id: await resolve('endpoint', endpoint) };
        const { name, uriPath } = await call(routes.get, { path });
        await confirm(`The cloud can no longer use ${uriPath} (endpoint ${name}).`, name, options.confirm);
        output.record(await call(routes.delete, { path }));
      }),
    );

  addRequests(noun);
  addSettings(noun);
  addTryRules(noun);
  addCredential(noun);
};
