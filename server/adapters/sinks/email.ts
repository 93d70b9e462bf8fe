// Mail: plain text, over SMTP with STARTTLS (RFC 3207) or TLS from the start. Without either
// nothing is sent: names of keys and databases, and invitations, are not for the wire. The
// notification target `email` sends one message an event; invitations go to one person each.

import { connect, type Socket } from 'node:net';
import { lookupWithin } from '../../base/name-lookup.ts';
import { callOutside, ItemRefused } from '../../base/outside.ts';
import { toRfc3339 } from '../../base/time.ts';
import type { AuditSeverity } from '../../domain/audit-event.ts';
import type { ForeignDisk } from '../../ports/foreign-disk.ts';
import type { Mailer } from '../../ports/mailer.ts';
import type { NotificationMessage, NotificationTarget } from '../../ports/notification-target.ts';

interface MailerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: 'starttls' | 'implicit';
  readonly from: string;
  readonly user: string | undefined;
  readonly passwordFile: string | undefined;
  readonly ca: string | undefined;
  readonly read: ForeignDisk['read'];
}
export interface EmailOptions extends MailerOptions {
  readonly name: string;
  readonly to: readonly string[];
  readonly minSeverity: AuditSeverity;
}

/** How long the mail server may be silent, and how long a message may take in total. */
const timeoutMs = 15_000;
const totalMs = 60_000;
/** In bytes. */
const longestAnswers = 1024 * 1024;

export const mailText = ({ event, at, text, fix, notification }: NotificationMessage): string =>
  [
    event === 'resolved' ? `Resolved: ${text}.` : `${text}.`,
    '',
    ...(event === 'resolved' || fix === '' ? [] : [`How to fix: ${fix}.`, '']),
    ...(notification === null
      ? []
      : [
          `kind      ${notification.kind}`,
          `severity  ${notification.severity}`,
          `about     ${notification.subject.kind} ${notification.subject.name} (${notification.subject.id})`,
          ...(event === 'resolved' ? [] : [`act by    ${toRfc3339(notification.harmAt)}`]),
          ...Object.entries(notification.details).map(([name, value]) => `${name.padEnd(9)} ${JSON.stringify(value)}`),
        ]),
    `at        ${toRfc3339(at)}`,
  ].join('\n');

const titles = { raised: '', worse: 'more severe: ', resolved: 'resolved: ', test: 'test: ' } as const;

export const openMailer = (options: MailerOptions, longestMs = totalMs): Mailer => {
  const { host, port, tls, from, user, passwordFile, ca, read } = options;
  // Loaded when there is such a target, at the start: loading takes too long while requests are
  // served.
  const library = import('nodemailer');
  const stopping = new AbortController();
  return {
    send: async ({ id, to, subject, text }) => {
      // Opened for each message: they are few, and a password or an authority that was changed is
      // taken. The mailer takes text.
      const { createTransport } = await library;
      await callOutside({ place: `${host}:${port}`, totalMs: longestMs, stopping: stopping.signal }, async (signal) => {
        const pass = passwordFile === undefined ? undefined : (await read(passwordFile)).toString('utf8').trim();
        const authorities = ca === undefined ? undefined : await read(ca);
        const transport = createTransport({
          host,
          port,
          secure: tls === 'implicit',
          requireTLS: tls === 'starttls',
          ...(user === undefined || pass === undefined ? {} : { auth: { user, pass } }),
          tls: { minVersion: 'TLSv1.2', ...(authorities === undefined ? {} : { ca: authorities }) },
          connectionTimeout: timeoutMs,
          greetingTimeout: timeoutMs,
          socketTimeout: timeoutMs,
          disableFileAccess: true,
          disableUrlAccess: true,
          // The mailer ends a connection that is silent, and nothing else.
          getSocket: (_options: unknown, done: (error: Error | null, made?: { connection: Socket }) => void) => {
            const socket = connect({ host, port, lookup: lookupWithin(timeoutMs * 0.8) });
            signal.addEventListener('abort', () => socket.destroy());
            const counted = setInterval(() => {
              if (socket.bytesRead > longestAnswers) socket.destroy(new Error(`the answers of ${host} are too long`));
            }, 100);
            counted.unref();
            socket.once('close', () => clearInterval(counted));
            socket.once('error', done);
            socket.once('connect', () => {
              socket.off('error', done);
              done(null, { connection: socket });
            });
          },
        } as Parameters<typeof createTransport>[0]);
        try {
          await transport.sendMail({
            from,
            to: to.map((address) => ({ name: '', address })),
            subject,
            text,
            messageId: `<${id}@dke>`,
            headers: { 'Auto-Submitted': 'auto-generated' },
          });
        } catch (error) {
          const { responseCode, command } = error as { readonly responseCode?: number; readonly command?: string };
          // What the server says to the text of this mail (RFC 5321, 4.2.1).
          const isAboutMail = command === 'DATA' && responseCode !== undefined && responseCode >= 500;
          throw isAboutMail ? new ItemRefused((error as Error).message) : error;
        } finally {
          transport.close();
        }
      });
    },
    close: () => {
      stopping.abort();
      return Promise.resolve();
    },
  };
};

export const openEmail = ({ name, to, minSeverity, ...options }: EmailOptions): NotificationTarget => {
  const { send, close } = openMailer(options);
  return {
    name,
    type: 'email',
    target: to.join(', '),
    minSeverity,
    send: (message) => {
      const severity = message.notification === null ? '' : `[${message.notification.severity}] `;
      const subject = `DKE ${severity}${titles[message.event]}${message.text}`;
      return send({ id: message.id, to, subject, text: mailText(message) });
    },
    close,
  };
};
