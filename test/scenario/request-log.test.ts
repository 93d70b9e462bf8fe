// The request log of the real server: search, export, the way from a CloudTrail event to our
// record, retention; over the API and by the `dke` command.
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { CorrelatedRequests, EndpointRequest } from '../../server/contract/api/requests-routes.ts';
import { type CommandRun, runCommand } from '../support/command.ts';
import { type Site, startSite } from '../support/site.ts';
import { createXksEndpoint, type XksEndpoint } from '../support/xks-call.ts';
import { callXks, requestMetadata, type XksAnswer } from '../support/xks-client.ts';

interface Page {
  readonly items: readonly EndpointRequest[];
  readonly next: string | null;
}

let site: Site;
let place: XksEndpoint;
let neighbour: XksEndpoint;
const ids = { alice: randomUUID(), bob: randomUUID(), health: randomUUID(), neighbour: randomUUID() };
const alice = 'arn:aws:iam::111122223333:user/alice';
const formula = '=cmd|"/c calc"!A1';

const call = (at: XksEndpoint, target: string, metadata: object, more: object = {}): Promise<XksAnswer> =>
  callXks(
    { server: site.server, configuration: at.configuration },
    { target, body: { requestMetadata: requestMetadata(metadata), ...more } },
  );
const encrypt = (at: XksEndpoint, metadata: object): Promise<XksAnswer> =>
  call(at, `/keys/${at.endpoint.keyId}/encrypt`, metadata, { plaintext: 'AAAA', encryptionAlgorithm: 'AES_GCM' });
const search = (query: string): Promise<Page> => site.api.call('GET', `/api/requests?${query}`);
const searchOne = (query: string): Promise<Page> =>
  site.api.call('GET', `/api/endpoints/${place.endpoint.id}/requests?${query}`);
const dke = (args: readonly string[], input?: string): Promise<CommandRun> =>
  runCommand(args, {
    cwd: site.folder,
    environment: {
      DKE_SERVER: site.server.url,
      DKE_CA_FILE: site.server.caFile,
      DKE_TOKEN_FILE: join(site.folder, 'token'),
    },
    ...(input === undefined ? {} : { input }),
  });
const event = (requestID: string): string =>
  JSON.stringify({ eventVersion: '1.08', eventSource: 'kms.amazonaws.com', eventName: 'Encrypt', requestID });

beforeAll(async () => {
  site = await startSite();
  writeFileSync(join(site.folder, 'token'), `${site.token}\n`, { mode: 0o600 });
  place = await createXksEndpoint(site, 'searched');
  neighbour = await createXksEndpoint(site, 'neighbour');
  const way = { awsSourceVpc: 'vpc-1', awsSourceVpce: 'vpce-1', kmsViaService: 's3.us-east-1.amazonaws.com' };
  await encrypt(place, { kmsRequestId: ids.alice, ...way });
  await encrypt(place, { kmsRequestId: ids.bob, awsPrincipalArn: `${alice.slice(0, -5)}bob`, kmsOperation: formula });
  await call(place, '/health', { kmsRequestId: ids.health, kmsOperation: 'KmsHealthCheck' });
  await call(place, '/keys/no-such-key/metadata', {});
  await encrypt(neighbour, { kmsRequestId: ids.neighbour });
  await callXks(
    { server: site.server, configuration: { ...place.configuration, XksProxyUriPath: '/xks/nobody/kms/xks/v1' } },
    { target: '/health', body: {} },
  );
  // Records are written in batches.
  await vi.waitFor(async () => expect((await search('')).items).toHaveLength(6), { timeout: 300_000 });
});
afterAll(() => site?.end());

describe('a search', () => {
  test('of one endpoint sees its own alone, of all sees what met no endpoint too', async () => {
    const own = (await searchOne('')).items;
    expect(own.map(({ operation, status }) => [operation, status])).toEqual([
      ['metadata', 404],
      ['health', 200],
      ['encrypt', 200],
      ['encrypt', 200],
    ]);
    expect(new Set(own.map(({ endpointId }) => endpointId))).toEqual(new Set([place.endpoint.id]));
    expect((await search('endpointId=none')).items).toMatchObject([
      { endpointId: null, status: 404, errorName: 'InvalidUriPathException' },
    ]);
    expect((await search(`endpointId=${neighbour.endpoint.id}`)).items).toMatchObject([
      { kmsRequestId: ids.neighbour },
    ]);
  });

  test.each([
    ['an operation', 'operation=encrypt', 2],
    ['a status', 'status=404', 1],
    ['refusals', 'result=refused', 1],
    ['answers', 'result=answered', 3],
    ['an error', 'errorName=KeyNotFoundException', 1],
    ['an error in another case', 'errorName=keynotfoundexception', 0],
    ['what the cloud was asked', 'kmsOperation=KmsHealthCheck', 1],
    ['a principal', `principal=${encodeURIComponent(alice)}&operation=encrypt`, 1],
    ['principals that begin so', 'principal=arn:aws:iam::111122223333:user/*&operation=encrypt', 2],
    ['a principal in another case', `principal=${encodeURIComponent(alice.toUpperCase())}`, 0],
    ['a key ARN that begins so', 'kmsKeyArn=arn:aws:kms:us-east-1:*&operation=encrypt', 2],
    ['a VPC', 'awsSourceVpc=vpc-1', 1],
    ['a VPC endpoint', 'awsSourceVpce=vpce-1', 1],
    ['a service of the cloud', 'kmsViaService=s3.us-east-1.amazonaws.com', 1],
    ['another VPC', 'awsSourceVpc=vpc-2', 0],
    ['a key', 'externalKeyId=no-such-key', 1],
    ['a request of the cloud', `kmsRequestId=${ids.alice}`, 1],
    ['a request of another endpoint', `kmsRequestId=${ids.neighbour}`, 0],
    ['the past', 'to=2020-01-01T00:00:00%2B02:00', 0],
    ['since then', 'from=2020-01-01T00:00:00Z', 4],
  ])('for %s finds it', async (_, query, found) => {
    expect((await searchOne(query)).items).toHaveLength(found);
  });

  test('for our own request id finds the request that was answered with it', async () => {
    const { headers } = await encrypt(place, {});
    const id = String(headers['x-request-id']);
    await expect.poll(async () => (await search(`requestId=${id}`)).items.length).toBe(1);
  });

  test('continues where the previous page ended', async () => {
    const first = await searchOne('limit=2&operation=encrypt&to=2100-01-01T00:00:00Z');
    expect(first.next).not.toBeNull();
    const second = await searchOne(`limit=2&operation=encrypt&after=${first.next}`);
    const sequences = [...first.items, ...second.items].map(({ sequence }) => sequence);
    expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => b - a));
    expect(sequences.length).toBeGreaterThanOrEqual(3);
  });

  test.each([
    ['status=2xx', 'status'],
    ['result=maybe', 'result'],
    ['from=yesterday', 'from'],
    ['principal=', 'principal'],
    ['endpointId=x', 'endpointId'],
    ['after=x', 'after'],
  ])('%s names what is wrong', async (query, field) => {
    const { status, text } = await site.api.send('GET', `/api/endpoints/${place.endpoint.id}/requests?${query}`);
    expect(status).toBe(400);
    expect(text).toContain(field);
  });

  test('of an endpoint that is not there is not found', async () => {
    expect((await site.api.send('GET', '/api/endpoints/nobody/requests')).status).toBe(404);
    expect((await site.api.send('GET', '/api/endpoints/nobody/requests/export')).status).toBe(404);
  });
});

describe('an export', () => {
  const path = () => `/api/endpoints/${place.endpoint.id}/requests/export`;

  test('is NDJSON of the same records, and audited with its filter', async () => {
    const { items } = await searchOne('operation=encrypt');
    const { status, headers, text } = await site.api.send('GET', `${path()}?operation=encrypt`);
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/x-ndjson');
    expect(headers['content-disposition']).toBe('attachment; filename="dke-requests.ndjson"');
    expect(
      text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(items);
    expect(await site.api.audit('kind=request-log.exported')).toMatchObject([
      { subjectId: place.endpoint.id, details: { format: 'ndjson', filter: { operation: 'encrypt' } } },
    ]);
  });

  test('as CSV has no formula, no matter who sent one', async () => {
    const { text } = await site.api.send('GET', `${path()}?format=csv&kmsRequestId=${ids.bob}`);
    const [heading, row, end] = text.split('\r\n');
    expect(heading).toMatch(/^at,sequence,/);
    expect(row).toContain(`,"'=cmd|""/c calc""!A1",`);
    expect(end).toBe('');
  });

  test('of nothing is empty; of all endpoints has what met none', async () => {
    expect((await site.api.send('GET', `${path()}?operation=none`)).text).toBe('');
    const { text } = await site.api.send('GET', '/api/requests/export?endpointId=none');
    expect(text.trimEnd().split('\n')).toHaveLength(1);
  });
});

describe('a CloudTrail event', () => {
  const correlate = (text: string): Promise<CorrelatedRequests> =>
    site.api.call('POST', '/api/requests/correlate', { text });

  test('leads to our record, at whatever endpoint it is', async () => {
    const found = await correlate(`[${event(ids.alice)},\n${event(ids.neighbour)}]`);
    expect(found.kmsRequestIds).toEqual([ids.alice, ids.neighbour]);
    expect(found.items).toMatchObject([
      { kmsRequestId: ids.alice, endpointId: place.endpoint.id, principal: alice },
      { kmsRequestId: ids.neighbour, endpointId: neighbour.endpoint.id },
    ]);
  });

  test('of a call that never arrived finds nothing, and says how far back the log goes', async () => {
    const { items, oldest } = await correlate(event(randomUUID()));
    expect(items).toEqual([]);
    expect(oldest).toMatch(/^20/);
  });

  test('without a request id is refused with what to do', async () => {
    const { status, text } = await site.api.send('POST', '/api/requests/correlate', {
      text: '{"eventName": "Encrypt"}',
    });
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({ code: 'validation', hint: expect.stringContaining('requestID') });
  });
});

describe('the command', () => {
  test('searches by name, and of all endpoints without one', async () => {
    const own = await dke(['endpoint', 'requests', 'searched', '--result', 'refused', '-o', 'json']);
    expect(own.stderr).toBe('');
    expect((JSON.parse(own.stdout) as Page).items).toMatchObject([{ errorName: 'KeyNotFoundException' }]);
    const all = await dke(['endpoint', 'requests', '--principal', 'arn:aws:iam::111122223333:*', '--limit', '2']);
    expect(all.code).toBe(0);
    expect(all.stdout).toMatch(/\nmore: --after \d+\n$/);
  });

  test('exports into a new file that others cannot read, or to standard output', async () => {
    const file = join(site.folder, 'log.csv');
    expect((await dke(['endpoint', 'requests', 'searched', '--export', 'csv', '--out', file])).code).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).toMatch(/^at,sequence,/);
    const again = await dke(['endpoint', 'requests', 'searched', '--export', 'csv', '--out', file]);
    expect(again).toMatchObject({ code: 3, stderr: expect.stringContaining('exists') });
    const lines = await dke(['endpoint', 'requests', '--export', 'ndjson', '--kms-request-id', ids.alice]);
    expect(JSON.parse(lines.stdout)).toMatchObject({ kmsRequestId: ids.alice });
    const wrong = await dke(['endpoint', 'requests', '--export', 'xml', '--out', join(site.folder, 'never')]);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('format') });
    expect(existsSync(join(site.folder, 'never'))).toBe(false);
  });

  test('finds the request of an event on its standard input, or of an id', async () => {
    const pasted = await dke(['endpoint', 'find-request'], event(ids.bob));
    expect(pasted.code).toBe(0);
    expect(pasted.stdout).toContain(ids.bob);
    const byId = await dke(['endpoint', 'find-request', ids.health, '-o', 'json']);
    expect((JSON.parse(byId.stdout) as CorrelatedRequests).items).toMatchObject([{ operation: 'health' }]);
    const missing = await dke(['endpoint', 'find-request', 'never-seen']);
    expect(missing).toMatchObject({ code: 10, stderr: expect.stringContaining('the request log begins at') });
  });
});

test('a deleted endpoint leaves its records in the log of all', async () => {
  await site.api.call('DELETE', `/api/endpoints/${neighbour.endpoint.id}`);
  expect((await search(`endpointId=${neighbour.endpoint.id}`)).items).toHaveLength(1);
});
