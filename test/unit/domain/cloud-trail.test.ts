// A user pastes copied text: the request ids in it are found, in any format.
import { describe, expect, test } from 'vitest';
import { findKmsRequestIds } from '../../../server/domain/cloud-trail.ts';

const id = 'ff000af-00eb-00ce-0e00-ea000fb0fba0';
const event = {
  eventVersion: '1.08',
  userIdentity: { type: 'IAMUser', principalId: 'EX_PRINCIPAL_ID', arn: 'arn:aws:iam::111122223333:user/Alice' },
  eventTime: '2026-11-21T08:00:00Z',
  eventSource: 'kms.amazonaws.com',
  eventName: 'Encrypt',
  errorCode: 'KMSInvalidStateException',
  requestParameters: { keyId: '1234abcd-12ab-34cd-56ef-1234567890ab', encryptionAlgorithm: 'SYMMETRIC_DEFAULT' },
  responseElements: null,
  additionalEventData: { customKeyStoreId: 'cks-1234567890abcdef0' },
  requestID: id,
  eventID: '7f000af0-0aaa-4aaa-8aaa-aaaaaaaaaaaa',
  readOnly: true,
};
const without = ({ requestID: _, ...others }: typeof event, more: object) => ({ ...others, ...more });

describe('the request id of KMS is found in', () => {
  test.each<[string, string]>([
    ['an event', JSON.stringify(event, null, 2)],
    ['a file of records', JSON.stringify({ Records: [event] })],
    ['a list', JSON.stringify([event])],
    [
      'what lookup-events prints',
      JSON.stringify({ Events: [{ EventId: 'x', CloudTrailEvent: JSON.stringify(event) }] }),
    ],
    [
      'an event of EventBridge',
      JSON.stringify({ version: '0', id: 'e', 'detail-type': 'AWS API Call via CloudTrail', detail: event }),
    ],
    ['additionalEventData', JSON.stringify(without(event, { additionalEventData: { kmsRequestId: id } }))],
    ['responseElements', JSON.stringify(without(event, { responseElements: { requestId: id } }))],
    ['a piece of an event', `  "readOnly": true,\n  "requestID": "${id}",\n  "eventID": "7f000af0"\n`],
    ['a piece of JSON within JSON', `"CloudTrailEvent": "{\\"requestID\\":\\"${id}\\",\\"eventID\\":\\"x\\"}"`],
    ['an event with a comma after it', `${JSON.stringify(event)},`],
    ['a log line before the event', `2026-11-21 event: ${JSON.stringify(event)}`],
    ['the bare id', ` ${id}\n`],
  ])('%s', (_, text) => {
    expect(findKmsRequestIds(text)).toEqual([id]);
  });
});

test('several events give several ids, each once', () => {
  const text = [event, { ...event, requestID: 'second' }, event].map((one) => JSON.stringify(one)).join('\n');
  expect(findKmsRequestIds(text)).toEqual([id, 'second']);
});

test.each([
  ['no text', '  '],
  ['an event without one', JSON.stringify(without(event, {}))],
  ['an id that is none', JSON.stringify({ requestID: 'a b; drop table' })],
  ['nothing that can be read', '{"requestID": 7}'],
])('there is none in %s', (_, text) => {
  expect(findKmsRequestIds(text)).toEqual([]);
});

test('text of the longest permitted length is read once', () => {
  const longest = 60_000;
  for (const piece of ['a', 'a-', 'a"', 'a" ', 'a":', 'a\\', 'a\\"', 'a":"', '"', ' ', '{', '{"a":'])
    expect(findKmsRequestIds(piece.repeat(longest / piece.length))).toEqual([]);
});

test('text that is nested without end does not exhaust the stack, and what is long is cut', () => {
  expect(findKmsRequestIds(`${'[{"a":'.repeat(4000)}{"requestID": "deep"}${'}]'.repeat(4000)}`)).toEqual(['deep']);
  const many = JSON.stringify(Array.from({ length: 500 }, (_, at) => ({ requestID: `id-${at}` })));
  expect(findKmsRequestIds(many)).toHaveLength(20);
});
