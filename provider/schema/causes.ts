// Why a database cannot use its key: one row for each cause. A row is the line in the provider's
// log (what happened, then what to do), the return value that the database prints, and the row of
// docs/return-codes.md. The agent writes its lines from here (agent/causes.ts), the library from
// module/message/gen/causes.c, the findings of the diagnostics use the same words, and
// test/scenario/provider-log*.test.ts produces each cause for real.
//
// Words in braces are facts that the writer of the line fills in: paths, names, numbers and error
// codes, never a credential or data.
import type { ReturnValueName } from './return-values.ts';

export interface CauseRow {
  /** Whose log has the line: `library.log` of the database's own processes, or the agent's. */
  readonly told: 'library' | 'agent';
  readonly what: string;
  readonly todo: string;
  /**
   * What the call answers; null: the call continues, the line is a warning. Several where the
   * function decides.
   */
  readonly rv: ReturnValueName | readonly ReturnValueName[] | null;
}

export const causes = {
  // --- between the database's process and the agent ----------------------------------------------
  'agent-missing': {
    told: 'library',
    what: 'no agent listens at {socket}, and there is none to start: {program}: {error}',
    todo: 'install dke-agent next to the library, executable for this OS user, or start its service',
    rv: 'DEVICE_REMOVED',
  },
  'agent-start': {
    told: 'library',
    what: 'the agent {program} does not start ({error})',
    todo: 'run it by hand as this OS user, with --socket {socket}: it prints the reason',
    rv: 'DEVICE_REMOVED',
  },
  'agent-lost': {
    told: 'library',
    what: 'the agent at {socket} cannot be reached: {error}',
    todo: 'check that it is running, and read its log',
    rv: 'DEVICE_REMOVED',
  },
  'agent-slow': {
    told: 'library',
    what: 'the agent has not answered call {call} within {limit} ms',
    todo: 'check its log, the load of this host, and call_timeout_ms in pkcs11.toml',
    rv: 'DEVICE_ERROR',
  },
  'agent-interrupted': {
    told: 'library',
    what: 'the agent ended during call {call}, which is not sent twice',
    todo: 'check whether the call took effect, then try again; the log of the agent may say why it ended',
    rv: 'DEVICE_ERROR',
  },
  'socket-directory': {
    told: 'library',
    what: '{directory} can be changed by other OS users',
    todo: 'change it to a directory with owner uid {uid} and mode 700, or remove it',
    rv: 'DEVICE_REMOVED',
  },
  'socket-rights': {
    told: 'library',
    what: 'this OS user (uid {uid}) has no permission to use the socket {socket}: {error}',
    todo: "grant the permission, or set another socket in DKE_PKCS11_SOCKET; only its own user can use an agent's own socket",
    rv: 'DEVICE_REMOVED',
  },
  'agent-stranger': {
    told: 'library',
    what: 'the process that listens at {socket} runs as uid {uid}, which is neither this OS user nor root: it is not trusted',
    todo: 'end that process, or set another socket in DKE_PKCS11_SOCKET',
    rv: 'DEVICE_REMOVED',
  },
  'agent-refuses': {
    told: 'library',
    what: 'the agent at {socket} refuses this process with {config} ({rv})',
    todo: "search the agent's log for the number of this process: it has the reason",
    rv: 'DEVICE_ERROR',
  },
  'peer-refused': {
    told: 'agent',
    what: "a process of uid {uid} was refused: only uid {owner} and root can use this agent's socket",
    todo: 'give that user an agent of its own, or run one for all users under /run/dke-pkcs11',
    rv: 'DEVICE_REMOVED',
  },
  'user-limit': {
    told: 'agent',
    what: 'the processes of uid {uid} have reached the limit of {limit} {unit} in this agent',
    todo: 'end processes, close sessions and objects that are not needed, or raise the limit in DKE_AGENT_USER_LIMITS',
    rv: 'DEVICE_MEMORY',
  },
  'version-mismatch': {
    told: 'agent',
    what: 'the library of this process is version {library}, the agent is {agent}: they are not compatible',
    todo: 'install the library and the agent of one release, then end this agent and restart the database',
    rv: 'DEVICE_ERROR',
  },

  // --- the configuration -------------------------------------------------------------------------
  'config-missing': {
    told: 'agent',
    what: '{config}: no such file',
    todo: 'create the file, or start the database with DKE_PKCS11_CONF set to the path of pkcs11.toml',
    rv: 'DEVICE_ERROR',
  },
  'config-unreadable': {
    told: 'agent',
    what: '{config}: cannot be read ({error})',
    todo: 'change it to a regular file with mode 600, owned by the OS user of the database, in a directory that this user can enter',
    rv: 'DEVICE_ERROR',
  },
  'config-owner': {
    told: 'agent',
    what: '{config}: owned by uid {owner}, but the process runs as uid {uid}',
    todo: 'run the program as the owner of the file or as root, or set DKE_PKCS11_CONF to a file of its own user; change the owner only if no database uses the file',
    rv: 'DEVICE_ERROR',
  },
  'config-mode': {
    told: 'agent',
    what: '{config}: mode {mode} gives other users access',
    todo: 'chmod 600 {config}; then rotate the access_token, because other users could read it: dke tde app rotate-guid',
    rv: 'DEVICE_ERROR',
  },
  'config-malformed': {
    told: 'agent',
    what: '{config}: {error}',
    todo: 'correct the file; dke tde app rotate-guid --out pkcs11.toml writes a complete one',
    rv: 'DEVICE_ERROR',
  },
  'ca-file': {
    told: 'agent',
    what: '{file}: cannot be used as ca_file ({error})',
    todo: "put the certificate of the service's certificate authority there: a PEM file of at most 512 KiB that the OS user of the database can read",
    rv: 'DEVICE_ERROR',
  },
  'client-certificate': {
    told: 'agent',
    what: '{file}: cannot be used as client_certificate or client_key ({error})',
    todo: 'put the certificate and its private key there as PEM; the key must have mode 600 and belong to the OS user of the database',
    rv: 'DEVICE_ERROR',
  },
  'log-directory': {
    told: 'agent',
    what: '{wanted} cannot be written: the log goes to {directory}',
    todo: 'create it as a directory of the OS user that runs the agent, or change log_dir in pkcs11.toml',
    rv: null,
  },

  // --- the connection to the service -------------------------------------------------------------
  'service-down': {
    told: 'agent',
    what: '{origin} cannot be reached ({error})',
    todo: 'check that the service is running, and check server_url, routes and firewalls',
    rv: 'DEVICE_ERROR',
  },
  'service-name': {
    told: 'agent',
    what: 'the name of {origin} cannot be resolved ({error})',
    todo: 'check the name in server_url, and the DNS of this host (DNS_TIMEOUT: no DNS server answers)',
    rv: 'DEVICE_ERROR',
  },
  'service-slow': {
    told: 'agent',
    what: '{origin} did not answer in time ({error})',
    todo: 'check the load of the service and the network to it; connect_timeout_ms and call_timeout_ms are in pkcs11.toml',
    rv: 'DEVICE_ERROR',
  },
  'tls-untrusted': {
    told: 'agent',
    what: 'the certificate of {origin} is not trusted ({error})',
    todo: "set ca_file in pkcs11.toml to the certificate of its certificate authority (self-signed: the service's tls.crt)",
    rv: 'DEVICE_ERROR',
  },
  'tls-expired': {
    told: 'agent',
    what: 'the certificate of {origin} is not valid at this time ({error})',
    todo: 'renew the certificate at the service; check the clocks of both hosts',
    rv: 'DEVICE_ERROR',
  },
  'tls-name': {
    told: 'agent',
    what: 'the certificate of {origin} is for another name ({error})',
    todo: 'use a name of the certificate in server_url, or issue a certificate for this name',
    rv: 'DEVICE_ERROR',
  },
  'tls-failed': {
    told: 'agent',
    what: 'the TLS handshake with {origin} failed ({error})',
    todo: 'check that server_url leads to the service itself, and not to a proxy',
    rv: 'DEVICE_ERROR',
  },
  'service-busy': {
    told: 'agent',
    what: '{origin} refuses calls for now: {error}',
    todo: 'the service is starting, stopping or overloaded: try again, and read its log',
    rv: 'DEVICE_ERROR',
  },
  'service-failed': {
    told: 'agent',
    what: '{origin} failed: {error}',
    todo: 'search the log of the service for this request id; check whether a proxy answers instead of the service',
    rv: 'DEVICE_ERROR',
  },

  // --- answers of the service --------------------------------------------------------------------
  'token-unknown': {
    told: 'agent',
    what: '{origin} does not know the access_token',
    todo: 'compare server_url with the service, and put an access_guid of the application into server_url and access_token',
    rv: 'ACTION_PROHIBITED',
  },
  'token-removed': {
    told: 'agent',
    what: 'the access_token was removed from its application (rotated)',
    todo: 'put the new access_guid into server_url and access_token: dke tde app rotate-guid writes the file',
    rv: 'ACTION_PROHIBITED',
  },
  'application-disabled': {
    told: 'agent',
    what: 'the application is disabled',
    todo: 'enable it at the service: dke tde app enable',
    rv: 'ACTION_PROHIBITED',
  },
  'network-refused': {
    told: 'agent',
    what: 'the service refuses calls from this network: {error}',
    todo: 'dke tde app callers shows and changes the allowed networks of the application',
    rv: 'ACTION_PROHIBITED',
  },
  'certificate-refused': {
    told: 'agent',
    what: 'the service refuses the client certificate of this host: {error}',
    todo: 'compare client_certificate in pkcs11.toml with dke tde app callers',
    rv: 'ACTION_PROHIBITED',
  },
  'not-allowed': {
    told: 'agent',
    what: 'the service does not allow it: {error}',
    todo: 'an application can use the keys of others in its group, but not change or destroy them; dke tde key show shows the owner',
    rv: ['ACTION_PROHIBITED', 'KEY_NOT_WRAPPABLE'],
  },
  'switch-off': {
    told: 'agent',
    what: 'the call needs the compatibility switch {name}, which is off for application {application}',
    todo: 'change the program to use stronger cryptography; or read docs/compatibility.md, then run: dke tde app compatibility {application} --permit {name}',
    rv: [
      'MECHANISM_INVALID',
      'MECHANISM_PARAM_INVALID',
      'ATTRIBUTE_VALUE_INVALID',
      'WRAPPED_KEY_INVALID',
      'KEY_SIZE_RANGE',
    ],
  },
  'switch-used': {
    told: 'agent',
    what: 'the process uses weaker cryptography: the compatibility switch {name} is on for application {application}',
    todo: 'change the program to use stronger cryptography, then run: dke tde app compatibility {application} --withdraw {name}',
    rv: null,
  },
  'label-missing': {
    told: 'agent',
    what: 'no object has the label {label}',
    todo: 'check that pkcs11.toml is that of the right application, that the application is in the group of the key, and that the key is not destroyed',
    rv: null,
  },
  'label-taken': {
    told: 'agent',
    what: 'the key cannot have this label: {error}',
    todo: 'use another label: a database finds its master key by the label, so no other key of the group can have the label of a master key',
    rv: 'TEMPLATE_INCONSISTENT',
  },
  'master-key-attribute': {
    told: 'agent',
    what: 'a master key or its metadata cannot have {attribute} false: what the key encrypts could never be read',
    todo: 'have the program set it to true, or leave it out; a key that only wraps other keys, or is for one session, needs a label of another form',
    rv: 'TEMPLATE_INCONSISTENT',
  },
  'key-disabled': {
    told: 'agent',
    what: 'the key of handle {handle}, or its vault, is disabled',
    todo: 'enable it at the service: dke key enable',
    rv: 'KEY_FUNCTION_NOT_PERMITTED',
  },
  'key-use': {
    told: 'agent',
    what: 'the key of handle {handle} cannot be used for this: {error}',
    todo: 'use a key that permits it; dke tde key show shows what a key can be used for',
    rv: 'KEY_FUNCTION_NOT_PERMITTED',
  },
  'key-destroyed': {
    told: 'agent',
    what: 'the object of handle {handle} is destroyed',
    todo: 'no command brings it back, so what is encrypted under the key is lost; dke tde key show shows when it was destroyed, and dke audit list shows who did it',
    rv: ['KEY_HANDLE_INVALID', 'OBJECT_HANDLE_INVALID', 'WRAPPING_KEY_HANDLE_INVALID', 'UNWRAPPING_KEY_HANDLE_INVALID'],
  },
  'key-missing': {
    told: 'agent',
    what: 'there is no object of handle {handle} for this application',
    todo: 'check that the application is still in the group of the key; then open the keystore again, so that the key is found by its label',
    rv: ['KEY_HANDLE_INVALID', 'OBJECT_HANDLE_INVALID', 'WRAPPING_KEY_HANDLE_INVALID', 'UNWRAPPING_KEY_HANDLE_INVALID'],
  },
  'key-tampered': {
    told: 'agent',
    what: 'the stored key of handle {handle} was changed outside of DKE: the service refuses it',
    todo: 'the audit log has an alarm that names the record: compare the database with a backup',
    rv: 'DEVICE_ERROR',
  },
} as const satisfies Record<string, CauseRow>;

export type CauseName = keyof typeof causes;
export const causeNames = Object.keys(causes) as CauseName[];

/** The facts of a cause: what is in its braces. */
type Braced<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Braced<Rest> : never;
export type Fact<C extends CauseName> = Braced<(typeof causes)[C]['what']> | Braced<(typeof causes)[C]['todo']>;
export type Facts<C extends CauseName> = { readonly [F in Fact<C>]: string | number };

const fill = (text: string, facts: { readonly [name: string]: string | number }): string =>
  text.replace(/\{(\w+)\}/g, (braced, name: string) => String(facts[name] ?? braced));

/** The two halves of the line: what happened, and what to do. */
export const describeCause = <C extends CauseName>(
  cause: C,
  facts: Facts<C>,
): { readonly what: string; readonly todo: string } => {
  const { what, todo }: CauseRow = causes[cause];
  return { what: fill(what, facts), todo: fill(todo, facts) };
};

/** The names of the return values that a cause can have. */
export const returnValuesOf = (cause: CauseName): readonly ReturnValueName[] => {
  const { rv }: CauseRow = causes[cause];
  if (rv === null) return [];
  return typeof rv === 'string' ? [rv] : rv;
};
