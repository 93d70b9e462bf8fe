// Mail to people. Server and sender are set only in the configuration file.

interface Mail {
  /** Identifies the mail: every attempt to send it has this id. */
  readonly id: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
}

export interface Mailer {
  /** Resolves when the server has accepted it; rejects when that is not certain. */
  send(mail: Mail): Promise<void>;
  close(): Promise<void>;
}
