// The sinks of the audit log and the targets of notifications, opened as the configuration names
// them.

import { openEmail, openMailer } from '../../adapters/sinks/email.ts';
import { openFileSink, readFileSink } from '../../adapters/sinks/file.ts';
import { openHttpsSink } from '../../adapters/sinks/https.ts';
import { openSyslogSink } from '../../adapters/sinks/syslog.ts';
import { openWebhook } from '../../adapters/sinks/webhook.ts';
import { maskUrl } from '../../base/redaction.ts';
import type { ForeignDisk } from '../../ports/foreign-disk.ts';
import type { AuditSinkSource, LogSink } from '../../ports/log-sink.ts';
import type { Mailer } from '../../ports/mailer.ts';
import type { NotificationTarget } from '../../ports/notification-target.ts';
import type { AuditSinkConfig, Config, NotificationTargetConfig } from '../config/config.ts';
import type { Disks } from './disks.ts';

export const openTarget = (
  target: NotificationTargetConfig,
  version: string,
  now: () => number,
  { files: { read } }: Pick<Disks, 'files'>,
): NotificationTarget =>
  target.type === 'webhook' ? openWebhook({ ...target, version, now, read }) : openEmail({ ...target, read });

/** What sends invitations: the mail server of the target that people.invitation_target names. */
export const openInvitationMailer = (
  { people: { invitationTarget }, notificationTargets }: Pick<Config, 'people' | 'notificationTargets'>,
  { files: { read } }: Pick<Disks, 'files'>,
): Mailer | undefined => {
  const target = notificationTargets.find(({ name }) => name === invitationTarget);
  // Within the time that a client waits for an answer.
  return target?.type === 'email' ? openMailer({ ...target, read }, 20_000) : undefined;
};

export const openSink = (sink: AuditSinkConfig, version: string, { ask, files: { read } }: Disks): LogSink => {
  if (sink.type === 'file')
    return {
      ...openFileSink(sink),
      send: (...given) => ask(sink.path, 'append', sink, ...given),
      setAside: (...given) => ask(sink.path, 'setAside', sink, ...given),
    };
  return sink.type === 'syslog' ? openSyslogSink({ ...sink, read }) : openHttpsSink({ ...sink, version, read });
};

const sourceOf = (sink: AuditSinkConfig, disk: ForeignDisk): AuditSinkSource => {
  const { name, type } = sink;
  if (type === 'file')
    return { name, type, target: sink.path, read: (log, after) => readFileSink(sink.path, log, after, disk) };
  return { name, type, target: type === 'syslog' ? `${sink.host}:${sink.port}` : maskUrl(sink.url), read: undefined };
};

/** What the sinks of the audit log still have, for a database that lacks records. */
export const auditSources = (
  { auditSinks }: Pick<Config, 'auditSinks'>,
  disk: ForeignDisk,
): readonly AuditSinkSource[] => auditSinks.filter(({ log }) => log === 'audit').map((sink) => sourceOf(sink, disk));
