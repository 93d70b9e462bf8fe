// Notification target `webhook`: posts one JSON document an event, signed:
// `DKE-Signature: t=<seconds>,v1=<hex>` is HMAC-SHA256 over `<seconds>.<body>` with the secret of a
// file. The target's name is resolved once for each call, every address that it has is checked, and
// the connection goes to one of those: a name that points inside, now or a moment later, leads
// nowhere. Redirects are refused.

import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { BlockList, isIP } from 'node:net';
import { resolveWithin } from '../../base/name-lookup.ts';
import { callOutside, requireAccepted, skipAnswer } from '../../base/outside.ts';
import { maskUrl } from '../../base/redaction.ts';
import { toRfc3339 } from '../../base/time.ts';
import type { AuditSeverity } from '../../domain/audit-event.ts';
import type { ForeignDisk } from '../../ports/foreign-disk.ts';
import type { NotificationMessage, NotificationTarget } from '../../ports/notification-target.ts';

export interface WebhookOptions {
  readonly name: string;
  readonly url: string;
  readonly secretFile: string;
  /** PEM file of the authorities to trust instead of the public ones. */
  readonly ca: string | undefined;
  /** Loopback, private and link-local addresses too. */
  readonly allowPrivate: boolean;
  readonly minSeverity: AuditSeverity;
  readonly version: string;
  readonly now: () => number;
  readonly read: ForeignDisk['read'];
}

const timeoutMs = 10_000;
export const signatureHeader = 'dke-signature';

const notPublic = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  notPublic.addSubnet(network, prefix, 'ipv4');
// Global unicast, without what carries an IPv4 address that is not seen here, or is for
// documentation.
const global6 = new BlockList();
global6.addSubnet('2000::', 3, 'ipv6');
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  notPublic.addSubnet(network, prefix, 'ipv6');

export const isPublicAddress = (address: string): boolean => {
  const family = isIP(address);
  if (family === 4) return !notPublic.check(address, 'ipv4');
  return family === 6 && global6.check(address, 'ipv6') && !notPublic.check(address, 'ipv6');
};

export const signBody = (secret: Buffer, seconds: number, body: string): string =>
  `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.`).update(body).digest('hex')}`;

/** The address to connect to. Throws when one of the name's addresses is not for us. */
const resolveTarget = async (host: string, allowPrivate: boolean) => {
  const found = await resolveWithin(timeoutMs * 0.8, host);
  const inside = found.find(({ address }) => !isPublicAddress(address));
  if (inside !== undefined && !allowPrivate)
    throw new Error(`${host} is ${inside.address}, which is not a public address: allow_private = true allows it`);
  const [first] = found;
  if (first === undefined) throw new Error(`${host} has no address`);
  return first;
};

export const webhookBody = ({ id, event, at, text, fix, notification }: NotificationMessage): string =>
  JSON.stringify({
    id,
    event,
    at: toRfc3339(at),
    text,
    fix,
    notification:
      notification === null
        ? null
        : {
            id: notification.id,
            kind: notification.kind,
            severity: notification.severity,
            stage: notification.stage,
            tenantId: notification.tenantId,
            subject: notification.subject,
            harmAt: toRfc3339(notification.harmAt),
            raisedAt: toRfc3339(notification.raisedAt),
            resolvedAt: notification.resolvedAt === null ? null : toRfc3339(notification.resolvedAt),
            details: notification.details,
          },
  });

export const openWebhook = (options: WebhookOptions): NotificationTarget => {
  const { name, url, secretFile, ca, allowPrivate, minSeverity, version, now, read } = options;
  const target = new URL(url);
  const host = target.hostname.replace(/^\[|\]$/g, '');
  const stopping = new AbortController();
  const post = async (message: NotificationMessage, signal: AbortSignal): Promise<void> => {
    const place = await resolveTarget(host, allowPrivate);
    const body = webhookBody(message);
    const secret = await read(secretFile);
    const authorities = ca === undefined ? undefined : await read(ca);
    const end = secret.findLastIndex((byte) => byte > 0x20) + 1;
    const signature = signBody(secret.subarray(0, end), Math.floor(now() / 1000), body);
    secret.fill(0);
    const sent = request(target, {
      method: 'POST',
      agent: false,
      minVersion: 'TLSv1.2',
      signal,
      ...(authorities === undefined ? {} : { ca: authorities }),
      lookup: (_host, { all }, done) => {
        if (all) done(null, [place]);
        else done(null, place.address, place.family);
      },
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': `dke/${version}`,
        [signatureHeader]: signature,
      },
    });
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      sent.on('error', reject);
      sent.once('response', resolve);
    });
    sent.end(body);
    try {
      const answer = await answered;
      requireAccepted(answer.statusCode ?? 0, target.host);
      await skipAnswer(answer);
    } finally {
      sent.destroy();
    }
  };
  const send = (message: NotificationMessage): Promise<void> =>
    callOutside({ place: target.host, totalMs: timeoutMs, stopping: stopping.signal }, (signal) =>
      post(message, signal),
    );
  return {
    name,
    type: 'webhook',
    target: maskUrl(url),
    minSeverity,
    send,
    close: () => {
      stopping.abort();
      return Promise.resolve();
    },
  };
};
