// Sends an invitation to the e-mail address of its user, after it was stored: a mail that fails
// leaves a user who can be invited again. Who chooses it: administrators choose address and names,
// the configuration chooses server and sender. The address is one address, so that no list and no
// second recipient is in it. The link is a single-use secret: it goes to the mail server only, over
// TLS, and is in no log. Mails are few at a time; what fails is told to the administrator, who may
// not have the link.

import { newId } from '../../base/ids.ts';
import { ItemRefused } from '../../base/outside.ts';
import { ServiceError } from '../../base/service-error.ts';
import { toRfc3339 } from '../../base/time.ts';
import type { InvitationDelivery } from '../../domain/user.ts';
import type { Ports } from '../../ports/ports.ts';
import type { DeliveredInvitation } from './people-operations.ts';
import type { Issued } from './user-records.ts';

const mostAtOnce = 4;
let underWay = 0;

/** What a mailer could read as more than one address, or as a name. */
const severalAddresses = /[,;:<>()[\]"\\]|[^\x21-\x7e]/;

/** Before anything is written. Throws 'conflict' or 'validation'. */
export const requireMailable = (
  { mailer }: Pick<Ports, 'mailer'>,
  email: string | null,
  deliver: InvitationDelivery,
): void => {
  if (deliver === 'show') return;
  if (mailer === undefined)
    throw new ServiceError('conflict', 'no mail server is set up for invitations', {
      hint: 'set people.invitation_target in dke.toml, or have the invitation shown',
    });
  if (email === null)
    throw new ServiceError('validation', 'the user has no e-mail address to send the invitation to', {
      hint: 'set one first: dke user change USER --email ADDRESS',
    });
  if (severalAddresses.test(email))
    throw new ServiceError('validation', 'no mail can be sent to this e-mail address', {
      hint: 'use one plain address, such as ada@example.com',
    });
};

const invitationText = (
  { url, expiresAt }: Pick<Issued, 'url' | 'expiresAt'>,
  name: string,
  publicUrl: string,
): string =>
  [
    `You are invited to the console of the DKE key management service at ${publicUrl}.`,
    '',
    `Your user name is ${name}. Choose your password with this single-use link:`,
    '',
    url,
    '',
    `The link is valid until ${toRfc3339(expiresAt)}.`,
    '',
    'If you do not expect this mail, do not open the link, and tell your administrator.',
    '',
  ].join('\n');

/** A server that refuses the text of a mail may repeat it in its answer, and the link with it. */
const withoutText = (error: unknown): unknown =>
  error instanceof ItemRefused || (error as { readonly command?: unknown }).command === 'DATA'
    ? 'the mail server refused the text of the mail'
    : error;

/** What the administrator gets: the link only if it was asked for. */
export const deliver = async (
  { mailer, identity, log, clock }: Pick<Ports, 'mailer' | 'identity' | 'log' | 'clock'>,
  how: InvitationDelivery,
  { hash: _, ...invitation }: Issued,
  { name, email }: { readonly name: string; readonly email: string | null },
): Promise<DeliveredInvitation> => {
  if (how === 'show' || mailer === undefined || email === null) return { invitation, mailed: null };
  const shown = how === 'mail' ? null : invitation;
  if (underWay >= mostAtOnce)
    return { invitation: shown, mailed: { to: email, failure: 'too many mails are being sent' } };
  underWay += 1;
  try {
    await mailer.send({
      id: newId(clock.now()),
      to: [email],
      subject: 'Invitation to the DKE console',
      text: invitationText(invitation, name, identity.publicUrl()),
    });
    return { invitation: shown, mailed: { to: email, failure: null } };
  } catch (error) {
    log.warn('an invitation could not be sent by mail', { error: withoutText(error) });
    return { invitation: shown, mailed: { to: email, failure: 'the mail server did not accept the mail' } };
  } finally {
    underWay -= 1;
  }
};
