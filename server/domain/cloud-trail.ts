// Finds the request ids of AWS KMS in what a person copied from CloudTrail: one event, a file of
// `Records`, what `aws cloudtrail lookup-events` prints (events as text within JSON), an event of
// EventBridge, the event with text around it, or the bare id. The id is in `requestID`; ids in
// other members (`additionalEventData`, `responseElements`) are used as well.

const mostIds = 20;
const deepest = 12;
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** requestID, requestId, kmsRequestId, request_id, x-amzn-RequestId, ... */
const bearsRequestId = (member: string): boolean =>
  member
    .replace(/[^A-Za-z]/g, '')
    .toLowerCase()
    .endsWith('requestid');

const collect = (value: unknown, into: Set<string>, depth: number): void => {
  if (depth > deepest || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) collect(item, into, depth + 1);
  } else if (typeof value === 'object') {
    for (const [member, inner] of Object.entries(value)) {
      if (typeof inner === 'string' && bearsRequestId(member)) {
        if (idPattern.test(inner)) into.add(inner);
      } else collect(inner, into, depth + 1);
    }
  } else if (typeof value === 'string' && /^\s*[{[]/.test(value)) {
    collect(parse(value), into, depth + 1);
  }
};

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

/** At most 20, in the order in which they stand there. */
export const findKmsRequestIds = (text: string): readonly string[] => {
  const trimmed = text.trim();
  if (idPattern.test(trimmed)) return [trimmed];
  const found = new Set<string>();
  collect(parse(trimmed), found, 0);
  if (found.size === 0) {
    // A piece of an event, or several lines of events: members are searched in the text. `\\"`:
    // JSON within JSON. A member begins where no other word does, so that a long word is read once:
    // without that, the time grew with the square of the text's length.
    for (const [, member = '', id = ''] of trimmed.matchAll(/(?<![\w-])([\w-]+)\\*"\s*:\s*\\*"([^"\\]{1,128})\\*"/g))
      if (bearsRequestId(member) && idPattern.test(id)) found.add(id);
  }
  return [...found].slice(0, mostIds);
};
