// The `dke` command for a call: one row for each route that a form calls. Values are quoted for a
// shell; a test runs the words of every row through the command's own parser.

import { shellWord } from '../../../../base/command-line.ts';
import type { ApiCall } from './client.ts';
import { compatibilityNames } from './compatibility.ts';

type Body = Readonly<Record<string, unknown>>;
/** Stands for a value that is not filled in yet. A value that looks like one is a value. */
class Place {
  readonly text: string;
  constructor(name: string) {
    this.text = `<${name}>`;
  }
}
/** What someone chose: never an option, whatever it begins with. */
class Value {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
/** A string is a word of the command itself: a noun, a verb, an option. */
type Word = string | Place | Value;
type Words = readonly (Word | undefined | null | false)[];
type Row = (ids: readonly Value[], body: Body, query: Readonly<Record<string, unknown>>) => Words;

const given = (value: unknown): Value | undefined =>
  (typeof value === 'string' && value !== '') || typeof value === 'number' ? new Value(String(value)) : undefined;
const place = (value: unknown, name: string): Word => given(value) ?? new Place(name);
const option = (name: string, value: unknown): Words => (given(value) === undefined ? [] : [name, given(value)]);
const valuesOf = (values: readonly unknown[]): Words => values.map((value) => new Value(String(value)));
const record = (value: unknown): Body => (typeof value === 'object' && value !== null ? (value as Body) : {});

const on =
  (...words: readonly string[]): Row =>
  ([id]) => [...words, id];

const grantsOf = (body: Body): Words =>
  (Array.isArray(body.grants) ? body.grants : []).flatMap((grant: unknown) => {
    const { role, scope } = record(grant);
    const { kind, id } = record(scope);
    return ['--role', place(role, 'role'), ...(kind === undefined ? [] : [`--${String(kind)}`, place(id, 'id')])];
  });

const tagsOf = (body: Body): Words =>
  Array.isArray(body.tags) && body.tags.length > 0 ? ['--tag', ...valuesOf(body.tags)] : [];

const settingsOf = (body: Body): Words => {
  const rate = record(body.rate);
  const certificate = record(body.clientCertificate);
  return [
    ...(body.rate === null ? ['--no-rate'] : [...option('--rate', rate.perSecond), ...option('--burst', rate.burst)]),
    ...(body.clientCertificate === null
      ? ['--no-client-certificate']
      : ['--client-ca', 'ca.pem', ...option('--client-name', certificate.commonName)]),
    ...(Array.isArray(body.rules) && body.rules.length > 0 ? ['--rules', 'rules.json'] : ['--no-rules']),
    body.operatorProbes === false ? '--no-operator-probes' : '--operator-probes',
  ];
};

const named =
  (...words: readonly string[]): Row =>
  ([id], body) => [...words, id, place(body.name, 'name')];

/** `*` matches one segment of the path. */
export const commands: Readonly<Record<string, Row>> = {
  'POST /api/vaults': (_, body) => ['vault', 'create', place(body.name, 'name')],
  'POST /api/vaults/*/enable': on('vault', 'enable'),
  'POST /api/vaults/*/disable': on('vault', 'disable'),
  'PUT /api/vaults/*/name': named('vault', 'rename'),
  'PUT /api/vaults/*/profile': ([id], body) => ['vault', 'profile', id, place(body.profile, 'profile')],
  'DELETE /api/vaults/*': on('vault', 'delete'),
  'POST /api/keys': (_, body) => [
    ...['key', 'create', place(body.name, 'name'), '--vault', place(body.vaultId, 'vault')],
    ...tagsOf(body),
  ],
  'PUT /api/keys/*': ([id], body) => {
    const tags = tagsOf(body);
    return ['key', 'set', id, '--name', place(body.name, 'name'), ...(tags.length === 0 ? ['--no-tags'] : tags)];
  },
  'GET /api/keys/export': (_, __, query) => [
    ...['key', 'export', ...option('--format', query.format), ...option('--vault', query.vaultId)],
    ...[...option('--kind', query.kind), ...option('--state', query.state), ...option('--tag', query.tag)],
    ...option('--created-after', query.createdAfter),
    ...option('--created-before', query.createdBefore),
    ...option('--used-after', query.usedAfter),
    ...option('--used-before', query.usedBefore),
    ...(query.neverUsed === 'true' ? ['--never-used'] : []),
    ...option('--tenant', query.tenant),
  ],
  'POST /api/keys/*/enable': on('key', 'enable'),
  'POST /api/keys/*/disable': on('key', 'disable'),
  'POST /api/keys/*/rotate': on('key', 'rotate'),
  'DELETE /api/keys/*': on('key', 'delete'),
  'POST /api/tde/groups': (_, body) => ['tde', 'group', 'create', place(body.name, 'name')],
  'PUT /api/tde/groups/*/name': named('tde', 'group', 'rename'),
  'POST /api/tde/applications': (_, body) => [
    ...['tde', 'app', 'register', place(body.name, 'name'), '--group', place(body.groupId, 'group')],
    ...option('--app-id', body.appId),
    ...['--out', 'pkcs11.toml'],
  ],
  'PUT /api/tde/applications/*/name': named('tde', 'app', 'rename'),
  'POST /api/tde/applications/*/enable': on('tde', 'app', 'enable'),
  'POST /api/tde/applications/*/disable': on('tde', 'app', 'disable'),
  'PUT /api/tde/applications/*/compatibility': ([id], body) => {
    const switches = Array.isArray(body.switches) ? body.switches.map(String) : [];
    const optionOf = (name: string, are: boolean): Words => {
      const named = compatibilityNames.filter((each) => switches.includes(each) === are);
      return named.length === 0 ? [] : [name, ...named];
    };
    return [...['tde', 'app', 'compatibility', id], ...optionOf('--permit', true), ...optionOf('--withdraw', false)];
  },
  'PUT /api/tde/applications/*/callers': ([id], body) => {
    const networks = Array.isArray(body.networks) ? valuesOf(body.networks) : [];
    const hasCertificates = Array.isArray(body.certificates) && body.certificates.length > 0;
    return [
      ...['tde', 'app', 'callers', id, '--remove-network', 'all', '--remove-certificate', 'all'],
      ...(networks.length === 0 ? [] : ['--add-network', ...networks]),
      ...(hasCertificates ? ['--add-certificate', 'client.crt'] : []),
    ];
  },
  'POST /api/tde/applications/*/move': ([id], body, query) => [
    ...['tde', 'app', 'move', id, '--to', place(body.groupId, 'group')],
    ...(query.dryRun === true ? ['--dry-run'] : option('--confirm', body.confirm)),
  ],
  'POST /api/tde/applications/*/access-guids': ([id]) => ['tde', 'app', 'rotate-guid', id, '--out', 'pkcs11.toml'],
  'DELETE /api/tde/applications/*/access-guids/*': ([id, guid]) => ['tde', 'app', 'remove-guid', id, guid],
  'POST /api/tde/applications/*/master-keys/*/destroy': ([, key], body, query) => [
    ...['tde', 'key', 'destroy', key],
    ...(query.dryRun === true ? ['--dry-run'] : option('--confirm', body.confirm)),
  ],
  'POST /api/tde/applications/*/runbook-runs': ([id], body) => [
    ...['runbook', 'start', place(body.runbook, 'runbook'), id],
    ...option('--release', body.release),
    ...option('--containers', body.containers),
  ],
  'PUT /api/tde/applications/*/runbook-runs/*/steps/*': ([id, run, step], body) => [
    ...['runbook', 'complete-step', id, run, step],
    body.outcome === 'not-needed' && '--not-needed',
    ...option('--note', body.note),
  ],
  'DELETE /api/tde/applications/*/runbook-runs/*/steps/*': ([id, run, step]) => [
    'runbook',
    'reopen-step',
    id,
    run,
    step,
  ],
  'POST /api/tde/applications/*/runbook-runs/*/finish': ([id, run], body) => [
    ...['runbook', 'finish', id, run],
    body.outcome === 'abandoned' && '--abandon',
    ...option('--note', body.note),
  ],
  'POST /api/endpoints': (_, body) => [
    ...['endpoint', 'create', place(body.name, 'name')],
    ...['--vault', place(body.vaultId, 'vault'), '--key', place(body.keyId, 'key')],
    ...option('--prefix', body.prefix),
    body.operatorProbes === false && '--no-operator-probes',
  ],
  'PUT /api/endpoints/*/name': named('endpoint', 'rename'),
  'POST /api/endpoints/*/enable': on('endpoint', 'enable'),
  'POST /api/endpoints/*/disable': on('endpoint', 'disable'),
  'PUT /api/endpoints/*/settings': ([id], body) => ['endpoint', 'set', id, ...settingsOf(body)],
  'DELETE /api/endpoints/*': on('endpoint', 'delete'),
  'POST /api/endpoints/*/credentials': ([id]) => ['endpoint', 'credential', 'add', id, '--out', 'proxy.json'],
  'DELETE /api/endpoints/*/credentials/*': ([id, credential]) => ['endpoint', 'credential', 'remove', id, credential],
  'POST /api/endpoints/*/diagnostics': ([id], body) => {
    const cloud = record(body.cloud);
    return [
      ...['doctor', 'endpoint', id],
      ...option('--cloud-uri-endpoint', cloud.uriEndpoint),
      ...option('--cloud-uri-path', cloud.uriPath),
      ...option('--cloud-access-key-id', cloud.accessKeyId),
      ...option('--cloud-key-id', cloud.externalKeyId),
    ];
  },
  'POST /api/endpoints/*/rules/simulate': ([id], body) => {
    const [first] = Array.isArray(body.requests) ? body.requests : [];
    const request = record(first);
    return [
      ...['endpoint', 'try-rules', id, '--operation', place(request.kmsOperation, 'operation')],
      ...option('--principal', request.awsPrincipalArn),
      ...option('--key', request.kmsKeyArn),
      ...option('--vpc', request.awsSourceVpc),
      ...option('--vpc-endpoint', request.awsSourceVpce),
      ...option('--via-service', request.kmsViaService),
      ...(body.rules === undefined ? [] : ['--rules', 'rules.json']),
    ];
  },
  'POST /api/external-key-stores': (_, body) => [
    ...['key-store', 'register', place(body.name, 'name'), '--id', place(body.customKeyStoreId, 'custom-key-store-id')],
    ...['--region', place(body.region, 'region'), '--endpoint', place(body.endpointId, 'endpoint')],
  ],
  'POST /api/external-key-stores/*/probe': on('key-store', 'probe'),
  'DELETE /api/external-key-stores/*': on('key-store', 'remove'),
  'POST /api/requests/correlate': () => ['endpoint', 'find-request', new Place('id')],
  'POST /api/users': (_, body) => [
    ...['user', 'create', place(body.name, 'name')],
    ...grantsOf(body),
    ...option('--display-name', body.displayName),
    ...option('--email', body.email),
    ...['--out', 'invitation'],
  ],
  'PUT /api/users/*': ([id], body) => [
    ...['user', 'change', id],
    ...grantsOf(body),
    ...option('--display-name', body.displayName),
    ...option('--email', body.email ?? '-'),
    body.mustChangePassword === true && '--require-new-password',
  ],
  'POST /api/users/*/enable': on('user', 'enable'),
  'POST /api/users/*/disable': on('user', 'disable'),
  'POST /api/users/*/unlock': on('user', 'unlock'),
  'POST /api/users/*/invitation': ([id], body) => [
    'user',
    'reset-password',
    id,
    body.revokeTokens === true && '--revoke-tokens',
    '--out',
    'invitation',
  ],
  'DELETE /api/users/*/factors': on('user', 'remove-factors'),
  'DELETE /api/users/*/sessions': on('user', 'end-sessions'),
  'DELETE /api/users/*': on('user', 'delete'),
  'DELETE /api/sessions/*': on('session', 'end'),
  'POST /api/tenants': (_, body) => ['tenant', 'create', place(body.name, 'name')],
  'PUT /api/tenants/*': named('tenant', 'rename'),
  'POST /api/tenants/*/suspend': on('tenant', 'suspend'),
  'POST /api/tenants/*/resume': on('tenant', 'resume'),
  'DELETE /api/tenants/*': on('tenant', 'delete'),
  'POST /api/tenants/*/restore': on('tenant', 'restore'),
  'POST /api/tenants/*/purge': ([id], body) => ['tenant', 'purge', id, ...option('--confirm', body.confirm)],
  'POST /api/approvals/*/approve': ([id], body) => ['approval', 'approve', id, ...option('--comment', body.comment)],
  'POST /api/approvals/*/reject': ([id], body) => ['approval', 'reject', id, ...option('--comment', body.comment)],
  'POST /api/approvals/*/withdraw': on('approval', 'withdraw'),
  'PUT /api/vaults/*/dual-control': ([id], body) => [
    ...['vault', 'dual-control', 'set', id, '--approvals', place(body.required, 'count')],
    ...(Array.isArray(body.actions) ? ['--for', body.actions.join(',')] : []),
    body.databases === 'allowed' && '--allow-databases',
  ],
  'DELETE /api/vaults/*/dual-control': on('vault', 'dual-control', 'remove'),
  'POST /api/notifications/*/acknowledge': on('notification', 'acknowledge'),
  'DELETE /api/notifications/*/acknowledge': on('notification', 'release'),
  'POST /api/nodes/*/drain': on('node', 'drain'),
  'POST /api/nodes/*/resume': on('node', 'resume'),
  'DELETE /api/nodes/*': on('node', 'remove'),
  'PUT /api/setup': (_, body) => ['setup', body.confirmed === false ? 'reopen' : 'confirm', place(body.step, 'step')],
  'POST /api/snapshots': () => ['snapshot', 'create'],
  'POST /api/snapshot-imports': () => ['snapshot', 'import', new Place('file')],
  'POST /api/snapshots/*/restore': ([id], body, query) => [
    ...['snapshot', 'restore', id, '--recovery-key', 'recovery.key'],
    ...option('--new-tenant', body.newTenant),
    ...option('--into', body.tenantId),
    query.dryRun === true && '--dry-run',
  ],
  'POST /api/snapshots/*/verify': on('snapshot', 'verify'),
  'POST /api/snapshots/*/undelete': on('snapshot', 'undelete'),
  'DELETE /api/snapshots/*': on('snapshot', 'delete'),
  'POST /api/recovery-keys': (_, body) => [
    ...['recovery-key', 'register', place(body.publicKey, 'public-key'), '--name', place(body.name, 'name')],
  ],
  'DELETE /api/recovery-keys/*': ([id], _, query) => [
    ...['recovery-key', 'remove', id],
    query.force === true && '--force',
  ],
  'POST /api/tokens': (_, body) => [
    ...['token', 'create', place(body.name, 'name')],
    ...(body.kind === 'metrics' ? ['--kind', 'metrics'] : grantsOf(body)),
    ...option('--expires', body.expiresAt),
    ...['--out', 'token'],
  ],
  'DELETE /api/tokens/*': on('token', 'revoke'),
};

interface Compiled {
  readonly method: string;
  readonly pattern: RegExp;
  readonly row: Row;
}
const compiled: readonly Compiled[] = Object.entries(commands).map(([key, row]) => {
  const [method = '', path = ''] = key.split(' ');
  return { method, pattern: new RegExp(`^${path.replaceAll('*', '([^/]+)')}$`), row };
});

const wordsOf = (call: ApiCall): readonly Word[] | null => {
  for (const { method, pattern, row } of compiled) {
    if (method !== call.method) continue;
    const found = pattern.exec(call.path);
    if (found === null) continue;
    const ids = found.slice(1).map((id) => new Value(decodeURIComponent(id)));
    return row(ids, record(call.body), call.query ?? {}).filter(
      (word) => typeof word === 'string' || word instanceof Place || word instanceof Value,
    );
  }
  return null;
};

/** The words of the command after `dke`, or null when no command is known for the call. */
export const commandWords = (call: ApiCall): readonly string[] | null =>
  wordsOf(call)?.map((word) => (typeof word === 'string' ? word : word.text)) ?? null;

/**
 * The command to type; null: none is known. It contains placeholders in angle brackets for values
 * that are not filled in yet.
 */
export const formatCommand = (call: ApiCall): string | null => {
  const words = wordsOf(call);
  if (words === null) return null;
  const line: { shown: string; isOperand: boolean }[] = [{ shown: 'dke', isOperand: false }];
  let option: string | undefined;
  for (const word of words) {
    const shown = word instanceof Place ? word.text : shellWord(typeof word === 'string' ? word : word.text);
    const isValue = typeof word !== 'string';
    if (!isValue) option = word.startsWith('--') ? word : undefined;
    const belongs = isValue && option !== undefined && shown.startsWith('-');
    // A value that looks like an option is one word with its own.
    if (belongs && line.at(-1)?.shown === option) line.pop();
    line.push({ shown: belongs ? `${option}=${shown}` : shown, isOperand: isValue && option === undefined });
  }
  const textOf = (part: typeof line): string => part.map(({ shown }) => shown).join(' ');
  const operands = line.filter(({ isOperand }) => isOperand);
  if (!operands.some(({ shown }) => shown.startsWith('-'))) return textOf(line);
  return `${textOf(line.filter(({ isOperand }) => !isOperand))} -- ${textOf(operands)}`;
};
