// Forwarded records are events of OCSF 1.3. ocsf-1.3.0.json has what the published schema (tag
// 1.3.0) says of the classes and objects that are used here: attributes by type, what is required,
// profiles, values with their names. Each kind of record is compared with it.
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { toOcsf } from '../../../server/adapters/sinks/ocsf.ts';
import { type AuditEvent, type AuditKind, auditKinds, subjectKinds } from '../../../server/domain/audit-event.ts';
import type { LogItem } from '../../../server/ports/log-sink.ts';
import type { XksRequestRecord } from '../../../server/ports/xks-directory.ts';
import { requestRecord } from '../../support/request-record.ts';

type Event = Readonly<Record<string, unknown>>;
interface Shape {
  readonly attributes: Readonly<Record<string, string>>;
  readonly required?: string;
  readonly profiles?: Readonly<Record<string, string>>;
  readonly values?: Readonly<Record<string, string>>;
  readonly names?: Readonly<Record<string, string>>;
  readonly atLeastOne?: string;
}
const schema = JSON.parse(readFileSync(join(import.meta.dirname, 'ocsf-1.3.0.json'), 'utf8')) as {
  readonly version: string;
  readonly classes: Readonly<Record<string, Shape & { readonly category: number }>>;
  readonly objects: Readonly<Record<string, Shape>>;
};
const words = (text = ''): readonly string[] => text.split(' ').filter((word) => word !== '');
const known = new Map<Shape, Readonly<Record<string, string>>>();
const typesOf = (shape: Shape): Readonly<Record<string, string>> => {
  const types =
    known.get(shape) ??
    Object.fromEntries(
      Object.entries(shape.attributes).flatMap(([type, names]) => words(names).map((name) => [name, type])),
    );
  known.set(shape, types);
  return types;
};

const isText = (value: unknown): boolean => typeof value === 'string' && value.length <= 65_535;
const values: Readonly<Record<string, (value: unknown) => boolean>> = {
  integer_t: Number.isInteger,
  long_t: Number.isInteger,
  timestamp_t: Number.isInteger,
  string_t: isText,
  username_t: isText,
  ip_t: (value) => typeof value === 'string' && isIP(value) !== 0 && value.length <= 40,
  json_t: () => true,
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
};
const faultsOfValue = (type: string, value: unknown, profiles: readonly string[], at: string): readonly string[] => {
  const item = type.endsWith('[]') ? type.slice(0, -2) : undefined;
  if (item !== undefined)
    return Array.isArray(value)
      ? value.flatMap((each, index) => faultsOfValue(item, each, profiles, `${at}[${index}]`))
      : [`${at}: no list`];
  const object = schema.objects[type];
  if (object !== undefined) return faultsOf(object, value as Event, profiles, at);
  return values[type]?.(value) === true ? [] : [`${at}: ${JSON.stringify(value)} is not ${type}`];
};
const faultsOf = (shape: Shape, event: Event, profiles: readonly string[], at: string): readonly string[] => {
  const types = typesOf(shape);
  const lacks = (name: string): boolean => {
    const profile = shape.profiles?.[name];
    return profile !== undefined && !profiles.includes(profile);
  };
  const one = words(shape.atLeastOne);
  return [
    ...words(shape.required).flatMap((name) => (name in event || lacks(name) ? [] : [`${at}.${name}: required`])),
    ...(one.length === 0 || one.some((name) => name in event) ? [] : [`${at}: none of ${one.join(', ')}`]),
    ...Object.entries(event).flatMap(([name, value]) => {
      const type = types[name];
      if (type === undefined) return [`${at}.${name}: no attribute`];
      return [
        ...(lacks(name) ? [`${at}.${name}: only with the profile ${shape.profiles?.[name]}`] : []),
        ...faultsOfValue(type, value, profiles, `${at}.${name}`),
      ];
    }),
    ...Object.entries(shape.values ?? {}).flatMap(([name, list]) => {
      if (!(name in event)) return [];
      const captions = new Map(list.split(', ').map((row) => [row.split(' ', 1)[0], row.slice(row.indexOf(' ') + 1)]));
      const caption = captions.get(String(event[name]));
      if (caption === undefined) return [`${at}.${name}: ${event[name]} is no value`];
      const told = event[shape.names?.[name] ?? ''];
      return event[name] === 99 || told === undefined || told === caption ? [] : [`${at}.${name}: called ${told}`];
    }),
  ];
};
/** A class with what all classes have. The class's own words come last, and so count. */
const classes = new Map(
  Object.entries(schema.classes).map(([uid, own]) => {
    const common = schema.classes['0'] ?? own;
    const attributes: Record<string, string> = {};
    for (const [name, type] of Object.entries({ ...typesOf(common), ...typesOf(own) }))
      attributes[type] = `${attributes[type] ?? ''} ${name}`;
    return [
      Number(uid),
      {
        ...{ ...own, attributes, required: `${common.required} ${own.required ?? ''}` },
        ...{ values: { ...common.values, ...own.values }, names: { ...common.names, ...own.names } },
      },
    ];
  }),
);
/** What the schema refuses of an event. */
const faults = (event: Event): readonly string[] => {
  const shape = classes.get(Number(event.class_uid));
  if (shape === undefined) return [`no class ${event.class_uid}`];
  const metadata = event.metadata as { readonly version: string; readonly profiles?: readonly string[] };
  return [
    ...faultsOf(shape, event, metadata.profiles ?? [], 'event'),
    ...(metadata.version === schema.version ? [] : ['another version']),
    ...(event.category_uid === shape.category ? [] : ['another category']),
    ...(event.type_uid === Number(event.class_uid) * 100 + Number(event.activity_id) ? [] : ['another type_uid']),
  ];
};

const send = (item: LogItem): Event => JSON.parse(JSON.stringify(toOcsf(item, 'dke/audit/one', '1.0.0'))) as Event;
const eventOf = (kind: AuditKind, more: Partial<AuditEvent> = {}): Event =>
  send({
    kind: 'record',
    sequence: 7,
    text: '{}',
    event: {
      ...{ sequence: 7, at: 1, kind, actorKind: 'user', actorId: 'actor', actorName: 'ada', peer: '192.0.2.1' },
      ...{ tenantId: 'tenant', subjectKind: 'user', subjectId: 'subject', requestId: 'request', details: {} },
      ...more,
    },
  });

describe('each kind of record is an event that the published schema accepts', () => {
  test.each(Object.keys(auditKinds) as AuditKind[])('%s', (kind) => {
    for (const subjectKind of subjectKinds)
      for (const details of [{}, { name: 'ada' }]) expect(faults(eventOf(kind, { subjectKind, details }))).toEqual([]);
    for (const actorKind of ['user', 'administrator', 'application', 'service'] as const)
      for (const peer of ['192.0.2.1', '2001:db8::1', '::ffff:192.0.2.1', null])
        expect(faults(eventOf(kind, { actorKind, peer }))).toEqual([]);
  });

  test('a request, whatever is known of it', () => {
    for (const operation of ['encrypt', 'decrypt', 'metadata', 'health'] as const)
      for (const told of [undefined, 'text', 'reason'] as const)
        for (const peer of ['192.0.2.7', null]) {
          const text = told === undefined ? null : told;
          const request: XksRequestRecord = {
            ...{ ...requestRecord(5, text), operation, peer, errorName: text, reason: text },
            ...{ externalKeyId: text, kmsKeyArn: text, kmsOperation: text, kmsRequestId: text },
            durationMs: 0.4,
          };
          expect(faults(send({ kind: 'request', sequence: 7, request, text: '{}' }))).toEqual([]);
        }
  });

  test('a checkpoint', () => {
    expect(faults(send({ kind: 'checkpoint', sequence: 7, at: 1, text: '{"size":7}' }))).toEqual([]);
  });

  test('two records of one number, of two histories of a log, have an id each, which a repeat keeps', () => {
    const uidOf = (text: string): unknown =>
      (send({ kind: 'checkpoint', sequence: 7, at: 1, text }) as { readonly metadata: { readonly uid: string } })
        .metadata.uid;
    const uids = ['{"size":7,"of":"one"}', '{"size":7,"of":"two"}', '{"size":7,"of":"one"}'].map(uidOf);
    expect([new Set(uids).size, uids[0]]).toEqual([2, uids[2]]);
  });

  test('what the schema refuses is found', () => {
    const event = eventOf('vault.created');
    const { entity: _, ...rest } = event;
    expect(faults(rest)).toEqual(['event.entity: required']);
    expect(faults({ ...event, word: 1 })).toEqual(['event.word: no attribute']);
    expect(faults({ ...event, activity_id: 77, type_uid: 300_477 })).toEqual(['event.activity_id: 77 is no value']);
    expect(faults({ ...event, activity_name: 'Delete' })).toEqual(['event.activity_id: called Delete']);
    expect(faults({ ...event, metadata: { ...(event.metadata as object), profiles: [] } })).toEqual([
      'event.actor: only with the profile host',
    ]);
    expect(faults({ ...event, actor: {} })).toHaveLength(1);
    expect(faults({ ...event, src_endpoint: { ip: 'balancer' } })).toHaveLength(1);
    expect(faults({ ...event, time: null })).toHaveLength(1);
  });
});

test('a sign-in that was refused is an authentication that failed, of the user who is known', () => {
  const authentication = { class_uid: 3002, activity_id: 1, activity_name: 'Logon' };
  for (const kind of ['sign-in.refused', 'authentication.failed'] as const) {
    expect(eventOf(kind, { actorKind: 'service', actorName: 'sign-in', details: { name: 'eve' } })).toMatchObject({
      ...authentication,
      status_id: 2,
      user: { uid: 'subject', name: 'eve' },
    });
    expect(eventOf(kind, { subjectKind: 'service' }).user).toEqual({ name: 'unknown' });
  }
  expect(eventOf('session.started', { subjectKind: 'session' })).toMatchObject({
    ...authentication,
    status_id: 1,
    user: { uid: 'actor', name: 'ada' },
  });
  // The end of a session names its user, even when an administrator ended it.
  expect(eventOf('session.ended', { details: { name: 'eve' } })).toMatchObject({
    ...{ class_uid: 3002, activity_id: 2, status_id: 1 },
    user: { uid: 'subject', name: 'eve' },
  });
});

test('only a start and a stop of the service are those of an application', () => {
  const lifecycle = Object.keys(auditKinds).filter((kind) => eventOf(kind as AuditKind).class_uid === 6002);
  expect(lifecycle).toEqual(['service.started', 'service.stopped']);
});
