// What a person does at the database, step by step, for each operation that moves key material: rotation, migration and back,
// standby, restore, clone, upgrade of the library. Data, in one place: the pages show it, the command prints it, a run
// keeps what it was shown. Statements are the database's own; values of an application fill the places in braces.
//
// The password in the statements is advisory: the provider looks at none, the access_guid in pkcs11.toml is the credential.

/** The releases that differ in how it is done. */
export const releases = {
  '11g': '11g R2',
  '12c-18c': '12c to 18c',
  '19c': '19c and later',
} as const;
export type Release = keyof typeof releases;
export const releaseNames = Object.keys(releases) as Release[];

export const containers = { 'non-cdb': 'No container database', cdb: 'Container database (CDB)' } as const;
export type Containers = keyof typeof containers;
export const containerNames = Object.keys(containers) as Containers[];

/** Where a step is done. */
export type Place = 'host' | 'database' | 'console' | 'target-host' | 'target';

/** What fills the places. */
export const runbookValues = {
  application: 'Name of the TDE application',
  applicationId: 'Its id',
  appId: 'Its app_id',
  group: 'Name of its group',
  library: 'Where the library lies',
  config: 'Where pkcs11.toml lies',
  logs: 'Where the provider writes its log',
  owner: 'OS user and group of the database',
  hosts: 'Hosts that have used it',
  masterKey: 'Label of its newest master key',
} as const;
export type RunbookValues = { readonly [name in keyof typeof runbookValues]: string };

interface StepRow {
  /** Stable: what was ticked is kept under it. */
  readonly id: string;
  readonly title: string;
  readonly place: Place;
  readonly text?: string;
  /** What goes wrong without it. */
  readonly warning?: string;
  readonly sql?: string;
  readonly shell?: string;
  /** How it is seen that the step has worked. */
  readonly expect?: string;
  /** The `dke` command that does or shows the same. */
  readonly command?: string;
  /** Absent: all. */
  readonly releases?: readonly Release[];
  readonly containers?: Containers;
}
export type RunbookStep = Omit<StepRow, 'releases' | 'containers'>;

interface RunbookRow {
  readonly title: string;
  readonly summary: string;
  /** The database is away for its users meanwhile. */
  readonly downtime: boolean;
  readonly releases: readonly Release[];
  /** True: it differs with containers. */
  readonly byContainers: boolean;
  readonly warnings: readonly string[];
  readonly steps: readonly StepRow[];
}

const all = releaseNames;
const from12c = ['12c-18c', '19c'] as const;
const before19c = ['11g', '12c-18c'] as const;

const literal =
  'The password is always a literal string: IDENTIFIED BY EXTERNAL STORE is refused with ORA-00988. Any text that is not empty will do; it opens nothing.';
const backups =
  'Data of encrypted tablespaces stays encrypted in backups, RMAN backups too. Data of encrypted columns does not, nor in export dumps: export them with Data Pump and ENCRYPTION=all ENCRYPTION_ALGORITHM=AES256 ENCRYPTION_MODE=TRANSPARENT.';
const oldKeysStay =
  'Earlier master keys stay in use: old backups, redo and read-only tablespaces name them. A rotation destroys none, and none may be destroyed after it.';
const sharedGuid =
  'The same access_guid means the same master key: before anything that destroys, compare the server_url of every instance, as the OS user of its database.';

const walletView = 'SELECT WRL_TYPE, STATUS, WALLET_TYPE, WALLET_ORDER FROM V$ENCRYPTION_WALLET;';
const historyView = 'SELECT KEY_ID, CREATION_TIME, ACTIVATION_TIME FROM V$ENCRYPTION_KEYS ORDER BY CREATION_TIME DESC;';

const auditStep = (id: string, title: string): StepRow => ({
  id,
  title,
  place: 'console',
  text: 'The audit log of the application has the new master key with host and process, and the uses that follow it.',
  expect: 'A record “Key created” with the label ORACLE.TDE.HSM.MK…, at the time of the statement.',
  command: 'dke audit list --kind key.created --limit 5',
});

const checkApart: StepRow = {
  id: 'access-guid',
  title: 'Check that no other database shares the access_guid',
  place: 'host',
  text: 'As the OS user of the database, on each instance. Each server_url embeds the access_guid of its application.',
  warning: sharedGuid,
  shell: 'dke provider check --conf {config} --distinct',
  expect: 'No two databases under one access_guid, but for instances of one database.',
  command: 'dke tde key blast-radius {masterKey}',
};

const openKeystore: StepRow = {
  id: 'open',
  title: 'See that the keystore is open',
  place: 'database',
  sql: walletView,
  expect: 'WRL_TYPE HSM with STATUS OPEN.',
};

const backUpWallet: StepRow = {
  id: 'back-up-wallet',
  title: 'Back up the local wallet',
  place: 'host',
  shell: 'cp -p ewallet.p12 ewallet.p12.before-migration',
  warning:
    'Without this copy a migration that stops half-way leaves no way back. Keep it as long as backups from before it.',
};
const setAside: StepRow = {
  id: 'set-aside-auto-login',
  title: 'Set the auto-login wallet aside, if there is one',
  place: 'host',
  shell: '[ ! -f cwallet.sso ] || mv cwallet.sso cwallet.sso.before',
  text: 'It would open the local keystore by itself and hide which one is used.',
};

const configureBoth: readonly StepRow[] = [
  {
    id: 'method-both-sqlnet',
    title: 'Name both keystores in sqlnet.ora, and restart the database',
    place: 'host',
    releases: before19c,
    shell: 'ENCRYPTION_WALLET_LOCATION = (SOURCE = (METHOD = HSM) (METHOD_DATA = (DIRECTORY = <wallet_directory>)))',
    warning: 'It is read at start alone: the database must be restarted.',
  },
  {
    id: 'method-both-parameter',
    title: 'Name both keystores',
    place: 'database',
    releases: ['19c'],
    sql: "ALTER SYSTEM SET TDE_CONFIGURATION = 'KEYSTORE_CONFIGURATION=HSM|FILE' SCOPE = BOTH;",
  },
];

export const runbooks = {
  rotate: {
    title: 'Rotate the master key',
    summary: 'Sets a new master key. Data stays where it is: only the keys of tables and tablespaces are wrapped anew.',
    downtime: true,
    releases: all,
    byContainers: true,
    warnings: [literal, oldKeysStay],
    steps: [
      openKeystore,
      {
        id: 'history-before',
        title: 'Write down the newest master key',
        place: 'console',
        text: 'The service knows it as {masterKey}.',
        command: 'dke tde key list {applicationId} --limit 1',
      },
      {
        id: 'set-key',
        title: 'Set a new master key',
        place: 'database',
        releases: from12c,
        containers: 'non-cdb',
        sql: 'ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "<keystore_pin>";',
        text: 'With an auto-login wallet: ADMINISTER KEY MANAGEMENT SET KEY FORCE KEYSTORE IDENTIFIED BY "<keystore_pin>";',
        expect: 'keystore altered.',
      },
      {
        id: 'set-key-all',
        title: 'Set a new master key in every container',
        place: 'database',
        releases: from12c,
        containers: 'cdb',
        sql: 'ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "<keystore_pin>" CONTAINER = ALL;',
        text: 'In the root. With an auto-login wallet add FORCE KEYSTORE before IDENTIFIED BY. Some releases want it in each pluggable database by itself: look at the history of each.',
        expect: 'keystore altered.',
      },
      {
        id: 'set-key-11g',
        title: 'Set a new master key',
        place: 'database',
        releases: ['11g'],
        sql: 'ALTER SYSTEM SET ENCRYPTION KEY IDENTIFIED BY "<keystore_pin>";',
        expect: 'System altered.',
      },
      {
        id: 'check-history',
        title: 'Check that the new key is there',
        place: 'database',
        releases: from12c,
        sql: `${historyView}\n${walletView}`,
        expect: 'A row with the time of the statement on top; STATUS still OPEN.',
      },
      {
        id: 'check-wallet-11g',
        title: 'Check that the keystore is still open',
        place: 'database',
        releases: ['11g'],
        sql: 'SELECT WRL_TYPE, STATUS FROM V$ENCRYPTION_WALLET;',
        expect: 'HSM with STATUS OPEN.',
      },
      auditStep('check-audit', 'Check the same in the service'),
      {
        id: 'restart',
        title: 'Restart the database',
        place: 'database',
        sql: 'SHUTDOWN IMMEDIATE\nSTARTUP',
        text: 'A background process may go on with the earlier key for its heartbeat. After the restart the new one is used.',
        warning: 'Every user is disconnected: take a maintenance window, or one instance after the other.',
      },
      {
        id: 'check-use',
        title: 'See that the new key is used',
        place: 'console',
        text: 'Its first use is shown beside it, and the earlier key is used no more but for what it had encrypted.',
        command: 'dke tde key list {applicationId} --limit 2',
      },
    ],
  },
  check: {
    title: 'Check a rotation',
    summary: 'Shows which master key the database uses, from its own views and from the service.',
    downtime: false,
    releases: all,
    byContainers: true,
    warnings: [],
    steps: [
      { ...openKeystore, title: 'Look at the keystore' },
      {
        id: 'history',
        title: 'Look at the history of keys',
        place: 'database',
        releases: from12c,
        containers: 'non-cdb',
        sql: historyView,
        expect: 'The newest key on top, with its time of activation.',
      },
      {
        id: 'history-all',
        title: 'Look at the history of keys of every container',
        place: 'database',
        releases: from12c,
        containers: 'cdb',
        sql: 'SELECT CON_ID, KEY_ID, CREATION_TIME, ACTIVATION_TIME FROM V$ENCRYPTION_KEYS ORDER BY CON_ID, CREATION_TIME DESC;',
        expect: 'A new key for every container that was to be rotated.',
      },
      {
        id: 'service',
        title: 'Compare with the service',
        place: 'console',
        text: 'The newest here is {masterKey}: the database shows the same id, without the words before it.',
        command: 'dke tde key list {applicationId}',
      },
      auditStep('audit', 'Look at who made it'),
    ],
  },
  'restart-after-rotation': {
    title: 'Restart after a rotation',
    summary: 'Takes the earlier master key out of the hands of background processes.',
    downtime: true,
    releases: all,
    byContainers: false,
    warnings: [oldKeysStay],
    steps: [
      {
        id: 'reachable',
        title: 'See that the service can be reached from the host',
        place: 'host',
        warning: 'A database that starts while the service is away does not open its keystore.',
        shell: 'dke provider check --conf {config}',
        expect: 'Every line ok.',
        command: 'dke provider check --conf {config}',
      },
      {
        id: 'shutdown',
        title: 'Shut the database down and start it',
        place: 'database',
        sql: 'SHUTDOWN IMMEDIATE\nSTARTUP',
      },
      {
        id: 'open-by-hand',
        title: 'Open the keystore, unless it opens by itself',
        place: 'database',
        releases: from12c,
        sql: 'ADMINISTER KEY MANAGEMENT SET KEYSTORE OPEN IDENTIFIED BY "<keystore_pin>";',
      },
      {
        id: 'open-by-hand-11g',
        title: 'Open the keystore, unless it opens by itself',
        place: 'database',
        releases: ['11g'],
        sql: 'ALTER SYSTEM SET ENCRYPTION WALLET OPEN IDENTIFIED BY "<keystore_pin>";',
      },
      openKeystore,
      {
        id: 'use',
        title: 'See that the new key is used',
        place: 'console',
        text: 'Instances last seen: {hosts}.',
        command: 'dke tde app instances {applicationId}',
      },
    ],
  },
  migrate: {
    title: 'Migrate a local wallet to the service',
    summary: 'Makes a master key in the service and wraps the keys of tables and tablespaces anew under it.',
    downtime: true,
    releases: all,
    byContainers: true,
    warnings: [
      literal,
      backups,
      'Keep the local wallet: backups and redo from before the migration name the master keys in it.',
    ],
    steps: [
      {
        id: 'provider',
        title: 'See that the provider works on the host',
        place: 'host',
        text: 'The library lies at {library}, alone under its hsm directory; pkcs11.toml at {config}, mode 600, owner {owner}.',
        shell: 'dke provider check --conf {config}',
        expect: 'Every line ok.',
        command: 'dke provider check --conf {config}',
      },
      backUpWallet,
      setAside,
      {
        id: 'wallet-password',
        title: 'Give the local wallet a password that is not empty',
        place: 'database',
        releases: from12c,
        sql: 'ADMINISTER KEY MANAGEMENT ALTER KEYSTORE PASSWORD IDENTIFIED BY "<old_password>" SET "<wallet_password>" WITH BACKUP USING \'before_migration\';',
      },
      {
        id: 'wallet-password-11g',
        title: 'Give the local wallet a password that is not empty',
        place: 'host',
        releases: ['11g'],
        shell: 'orapki wallet change_pwd -wallet <wallet_directory>',
        text: 'orapki asks for both passwords; none belongs on a command line.',
      },
      ...configureBoth,
      {
        id: 'open-both',
        title: 'Open the keystore; both must be open',
        place: 'database',
        releases: from12c,
        sql: `ADMINISTER KEY MANAGEMENT SET KEYSTORE OPEN IDENTIFIED BY "<keystore_pin>";\n${walletView}`,
        expect: 'A row FILE and a row HSM, both with STATUS OPEN.',
      },
      {
        id: 'migrate',
        title: 'Migrate',
        place: 'database',
        releases: from12c,
        containers: 'non-cdb',
        sql: 'ADMINISTER KEY MANAGEMENT SET ENCRYPTION KEY IDENTIFIED BY "<keystore_pin>" MIGRATE USING "<wallet_password>" WITH BACKUP USING \'before_migration\';',
        expect: 'keystore altered.',
      },
      {
        id: 'migrate-cdb',
        title: 'Migrate, in the root',
        place: 'database',
        releases: from12c,
        containers: 'cdb',
        sql: 'ADMINISTER KEY MANAGEMENT SET ENCRYPTION KEY IDENTIFIED BY "<keystore_pin>" MIGRATE USING "<wallet_password>" WITH BACKUP USING \'before_migration\';',
        text: 'Pluggable databases with keys of their own set theirs after it: the runbook of the rotation, CONTAINER = ALL.',
        expect: 'keystore altered.',
      },
      {
        id: 'migrate-11g',
        title: 'Migrate',
        place: 'database',
        releases: ['11g'],
        sql: 'ALTER SYSTEM SET ENCRYPTION KEY IDENTIFIED BY "<keystore_pin>" MIGRATE USING "<wallet_password>";',
        warning: '11g R2 has no reverse migration: from here there is no statement that goes back to the local wallet.',
        expect: 'System altered.',
      },
      {
        id: 'check-history',
        title: 'Check the history of keys',
        place: 'database',
        releases: from12c,
        sql: historyView,
        expect: 'The new key on top.',
      },
      auditStep('check-audit', 'Check the audit log of the service'),
      {
        id: 'auto-login',
        title: 'Set up auto-login, if the database is to start unattended',
        place: 'database',
        releases: from12c,
        sql: "ADMINISTER KEY MANAGEMENT ADD SECRET '<keystore_pin>' FOR CLIENT 'HSM_PASSWORD' TO LOCAL AUTO_LOGIN KEYSTORE '<wallet_directory>';",
        text: 'It keeps the PIN, which opens nothing by itself.',
        expect: 'After a restart: WRL_TYPE HSM, STATUS OPEN, WALLET_TYPE AUTO_LOGIN.',
      },
    ],
  },
  'reverse-migrate': {
    title: 'Migrate back to a local wallet',
    summary: 'Makes a master key in the local wallet; the keys in the service stay for what was encrypted under them.',
    downtime: true,
    releases: from12c,
    byContainers: false,
    warnings: [
      literal,
      backups,
      '11g R2 has no reverse migration: it needs 12c or higher.',
      'Do not destroy the master keys in the service afterwards: backups and redo from before still name them.',
    ],
    steps: [
      setAside,
      {
        id: 'open-both',
        title: 'Open both keystores',
        place: 'database',
        sql: `ADMINISTER KEY MANAGEMENT SET KEYSTORE OPEN IDENTIFIED BY "<keystore_pin>" CONTAINER = ALL;\n${walletView}`,
        text: 'Without containers leave CONTAINER = ALL away.',
        expect: 'FILE and HSM, both with STATUS OPEN.',
      },
      {
        id: 'method-file-sqlnet',
        title: 'Name the local keystore alone in sqlnet.ora, and restart the database',
        place: 'host',
        releases: ['12c-18c'],
        shell:
          'ENCRYPTION_WALLET_LOCATION = (SOURCE = (METHOD = FILE) (METHOD_DATA = (DIRECTORY = <wallet_directory>)))',
        warning: 'It is read at start alone.',
      },
      {
        id: 'method-file-parameter',
        title: 'Name the local keystore alone',
        place: 'database',
        releases: ['19c'],
        sql: "ALTER SYSTEM SET TDE_CONFIGURATION = 'KEYSTORE_CONFIGURATION=FILE' SCOPE = BOTH;",
      },
      {
        id: 'reverse',
        title: 'Migrate back',
        place: 'database',
        sql: 'ADMINISTER KEY MANAGEMENT SET ENCRYPTION KEY IDENTIFIED BY "<wallet_password>" REVERSE MIGRATE USING "<keystore_pin>" WITH BACKUP USING \'before_reverse_migration\';',
        expect: 'keystore altered.',
      },
      {
        id: 'check',
        title: 'See that the local wallet alone is shown',
        place: 'database',
        sql: walletView,
        expect: 'FILE with STATUS OPEN, and no HSM.',
      },
      {
        id: 'quiet',
        title: 'See that the application is used no more',
        place: 'console',
        command: 'dke tde app instances {applicationId}',
        text: 'Disable the application when no restore from before needs it; enabling it again gives everything back.',
      },
    ],
  },
  standby: {
    title: 'Add a standby (Data Guard)',
    summary:
      'Gives the standby the wallet files, the library and the configuration of the primary, which is integrated already.',
    downtime: false,
    releases: all,
    byContainers: false,
    warnings: ['A standby that cannot decrypt redo stops applying it: check the keystore there before a switch-over.'],
    steps: [
      {
        id: 'wallet-files',
        title: 'Copy the wallet files from the primary',
        place: 'target-host',
        shell:
          'scp -p primary:<wallet_directory>/ewallet.p12 primary:<wallet_directory>/cwallet.sso <wallet_directory>/',
      },
      {
        id: 'library',
        title: 'Install the library in the same directory',
        place: 'target-host',
        shell: 'dke provider install --owner {owner}',
        expect: '{library}, owner {owner}, mode 775.',
        command: 'dke provider install --owner {owner}',
      },
      {
        id: 'config',
        title: 'Copy pkcs11.toml',
        place: 'target-host',
        shell:
          'install -m 600 -o "$(echo {owner} | cut -d: -f1)" -g "$(echo {owner} | cut -d: -f2)" pkcs11.toml {config}',
        text: 'The same application: primary and standby share master keys. A distinct app_id at the end of server_url tells them apart here.',
        warning: 'It holds the credential: mode 600, owner the OS user of the database, never by mail.',
      },
      {
        id: 'parameter',
        title: 'Name the keystores',
        place: 'target',
        releases: ['19c'],
        sql: "ALTER SYSTEM SET TDE_CONFIGURATION = 'KEYSTORE_CONFIGURATION=HSM|FILE' SCOPE = BOTH;",
      },
      {
        id: 'parameter-sqlnet',
        title: 'Name the keystores in sqlnet.ora, and restart the standby',
        place: 'target-host',
        releases: before19c,
        shell:
          'ENCRYPTION_WALLET_LOCATION = (SOURCE = (METHOD = HSM) (METHOD_DATA = (DIRECTORY = <wallet_directory>)))',
      },
      {
        id: 'check',
        title: 'Check the keystore of the standby',
        place: 'target',
        sql: walletView,
        expect: 'WRL_TYPE HSM, STATUS OPEN, WALLET_TYPE AUTO_LOGIN.',
      },
      {
        id: 'seen',
        title: 'See the standby here',
        place: 'console',
        text: 'Its host is among the instances of {application}; until now: {hosts}.',
        command: 'dke tde app instances {applicationId}',
      },
    ],
  },
  restore: {
    title: 'Restore on another system',
    summary:
      'Gives the target what it needs to read encrypted backups: the wallet files or this application, library and configuration.',
    downtime: false,
    releases: all,
    byContainers: false,
    warnings: [
      backups,
      'A restore needs every master key that the backup names, the earlier ones too: one that was destroyed is gone, and what it encrypted with it.',
    ],
    steps: [
      {
        id: 'access',
        title: 'Give the target the wallet files, or access to the application',
        place: 'target-host',
        text: 'A second access_guid of {application} for the target can be removed by itself afterwards.',
        command: 'dke tde app rotate-guid {applicationId} --out pkcs11.toml',
      },
      {
        id: 'library',
        title: 'Install the library',
        place: 'target-host',
        shell: 'dke provider install --owner {owner}',
        expect: '{library}, owner {owner}, mode 775.',
        command: 'dke provider install --owner {owner}',
      },
      {
        id: 'config',
        title: 'Put pkcs11.toml there',
        place: 'target-host',
        shell: 'chown {owner} {config}\nchmod 600 {config}\ndke provider check --conf {config}',
        expect: 'Every line ok.',
        command: 'dke provider check --conf {config}',
      },
      {
        id: 'parameter',
        title: 'Name the keystores',
        place: 'target',
        releases: ['19c'],
        sql: "ALTER SYSTEM SET TDE_CONFIGURATION = 'KEYSTORE_CONFIGURATION=HSM|FILE' SCOPE = BOTH;",
      },
      {
        id: 'parameter-sqlnet',
        title: 'Name the keystores in sqlnet.ora',
        place: 'target-host',
        releases: before19c,
        shell:
          'ENCRYPTION_WALLET_LOCATION = (SOURCE = (METHOD = HSM) (METHOD_DATA = (DIRECTORY = <wallet_directory>)))',
      },
      {
        id: 'rman',
        title: 'Restore, recover and open',
        place: 'target',
        sql: 'RMAN> RESTORE DATABASE;\nRMAN> RECOVER DATABASE;\nRMAN> ALTER DATABASE OPEN RESETLOGS;',
        warning: 'The keystore must be open before RECOVER: redo is encrypted as well.',
      },
      {
        id: 'check',
        title: 'Check the keystore',
        place: 'target',
        sql: walletView,
        expect: 'HSM with STATUS OPEN.',
      },
      {
        id: 'remove-guid',
        title: 'Take the access of the target away when the test is over',
        place: 'console',
        command: 'dke tde app guids {applicationId}',
        text: 'The list shows which access_guid was used when; dke tde app remove-guid removes one.',
        warning: sharedGuid,
      },
    ],
  },
  'clone-pdb': {
    title: 'Clone a pluggable database to another CDB',
    summary:
      'Clones on the source, unplugs into a file, plugs it in on the target, which must be able to use the master key.',
    downtime: false,
    releases: from12c,
    byContainers: false,
    warnings: [
      literal,
      'The target must be encrypted, integrated with the service, in the same group as the source, and have a master key in its root.',
    ],
    steps: [
      {
        id: 'group',
        title: 'See that source and target are in one group',
        place: 'console',
        text: '{application} is in the group {group}.',
        command: 'dke tde group members {group}',
      },
      {
        id: 'root-key',
        title: 'See that the root of the target has a master key',
        place: 'target',
        sql: walletView,
        expect: 'OPEN. OPEN_NO_MASTER_KEY: set one first.',
      },
      {
        id: 'clone',
        title: 'Clone on the source',
        place: 'database',
        sql: "CREATE PLUGGABLE DATABASE <clone> FROM <pdb> FILE_NAME_CONVERT = ('<from>', '<to>') KEYSTORE IDENTIFIED BY \"<keystore_pin>\";",
      },
      { ...openKeystore, id: 'check-clone', title: 'Check the keystore of the clone' },
      {
        id: 'columns',
        title: 'Check its encrypted columns',
        place: 'database',
        sql: 'SELECT OWNER, TABLE_NAME, COLUMN_NAME, ENCRYPTION_ALG FROM DBA_ENCRYPTED_COLUMNS;',
      },
      {
        id: 'unplug',
        title: 'Unplug the clone into a file',
        place: 'database',
        sql: 'ALTER PLUGGABLE DATABASE <clone> CLOSE IMMEDIATE;\nALTER PLUGGABLE DATABASE <clone> UNPLUG INTO \'<path>/<clone>.pdb\' ENCRYPT USING "<transport_secret>";',
        text: 'Releases before 12.2 know no ENCRYPT USING.',
      },
      {
        id: 'copy',
        title: 'Copy the file to the target',
        place: 'target-host',
        shell: 'scp source:<path>/<clone>.pdb <path>/',
      },
      {
        id: 'plug',
        title: 'Plug it in',
        place: 'target',
        sql: "CREATE PLUGGABLE DATABASE <clone> USING '<path>/<clone>.pdb' COPY FILE_NAME_CONVERT = ('<from>', '<to>') KEYSTORE IDENTIFIED BY \"<keystore_pin>\" DECRYPT USING \"<transport_secret>\";",
      },
      {
        id: 'open-new',
        title: 'Open the keystore in the new one, if needed',
        place: 'target',
        sql: 'ALTER PLUGGABLE DATABASE <clone> OPEN;\nALTER SESSION SET CONTAINER = <clone>;\nADMINISTER KEY MANAGEMENT SET KEYSTORE OPEN IDENTIFIED BY "<keystore_pin>";',
      },
      {
        id: 'data',
        title: 'Read some encrypted data',
        place: 'target',
        sql: 'SELECT COUNT(*) FROM <owner>.<encrypted_table>;',
        expect: 'Rows, not ORA-28374 or ORA-28365.',
      },
      {
        id: 'own-key',
        title: 'Let the clone set a master key of its own',
        place: 'target',
        sql: 'ADMINISTER KEY MANAGEMENT SET KEY IDENTIFIED BY "<keystore_pin>";',
        text: 'Until then it lives on a key of the source: destroying that one, or moving an application out of the group, would take the clone with it.',
      },
    ],
  },
  'upgrade-library': {
    title: 'Upgrade the library, with a way back',
    summary: 'Puts a new library in place of the one that the database has loaded; the file before is kept.',
    downtime: true,
    releases: all,
    byContainers: false,
    warnings: [
      'The database must be down: processes go on with the file that they have loaded.',
      'Exactly one library may lie under the hsm directory: keep the backup elsewhere.',
    ],
    steps: [
      {
        id: 'obtain',
        title: 'Get the new library, and compare its checksum',
        place: 'host',
        shell: 'sha256sum --check SHA256SUMS',
      },
      {
        id: 'rehearse',
        title: 'See what will be done',
        place: 'host',
        shell: 'dke provider upgrade --owner {owner} --dry-run',
        command: 'dke provider upgrade --owner {owner} --dry-run',
      },
      {
        id: 'shutdown',
        title: 'Shut the database down',
        place: 'database',
        sql: 'SHUTDOWN IMMEDIATE',
        warning: 'Downtime begins here. Every instance on this host, if they share the library.',
      },
      {
        id: 'replace',
        title: 'Replace it; the one before is backed up',
        place: 'host',
        shell: 'dke provider upgrade --owner {owner}',
        expect: '{library}, owner {owner}, mode 775.',
        command: 'dke provider upgrade --owner {owner}',
      },
      { id: 'start', title: 'Start the database', place: 'database', sql: 'STARTUP' },
      {
        id: 'logs',
        title: 'Look at the log of the provider',
        place: 'host',
        shell: 'tail -n 50 {logs}/*.log',
        expect: 'A connection to the service, and keys that are found.',
      },
      openKeystore,
      {
        id: 'seen',
        title: 'See the new version here',
        place: 'console',
        text: 'The instances of {application} show the version of their library.',
        command: 'dke tde app instances {applicationId}',
      },
      {
        id: 'roll-back',
        title: 'Only if it does not work: go back',
        place: 'host',
        shell: 'dke provider rollback --owner {owner}',
        text: 'With the database shut down, as above; then start it. Tick this step as not needed when all is well.',
        command: 'dke provider rollback --owner {owner}',
      },
    ],
  },
  destroy: {
    title: 'Before a master key is destroyed',
    summary:
      'What must be known before a destruction, or a test of one. It has no way back, and no restore brings a key back.',
    downtime: true,
    releases: all,
    byContainers: false,
    warnings: [
      sharedGuid,
      'Data encrypted under it becomes unreadable for good as soon as the database needs the key: at a restart, a new open of the keystore, an uncached block.',
      backups,
    ],
    steps: [
      checkApart,
      {
        id: 'blast-radius',
        title: 'Read the blast radius',
        place: 'console',
        text: 'Every app_id, host and process that used it, and when.',
        command: 'dke tde key blast-radius {masterKey}',
      },
      {
        id: 'backups',
        title: 'Name the backups that nobody will read again',
        place: 'database',
        sql: 'RMAN> LIST BACKUP SUMMARY;',
        text: 'All that were made while the key was in use.',
      },
      {
        id: 'dry-run',
        title: 'Destroy as a rehearsal',
        place: 'console',
        command: 'dke tde key destroy {masterKey} --dry-run',
        expect: 'What would be lost; nothing is.',
      },
      {
        id: 'agreed',
        title: 'Have the owner of the data agree in writing',
        place: 'console',
        text: 'Put the reference of the agreement beside this step: it goes into the audit log.',
      },
    ],
  },
} as const satisfies Record<string, RunbookRow>;

export type RunbookName = keyof typeof runbooks;
export const runbookNames = Object.keys(runbooks) as RunbookName[];
export const runbookRow = (name: RunbookName): RunbookRow => runbooks[name];

export type RunbookSummary = Pick<RunbookRow, 'title' | 'summary' | 'downtime' | 'releases' | 'byContainers'> & {
  readonly name: RunbookName;
};
export const summarizeRunbook = (name: RunbookName): RunbookSummary => {
  const { title, summary, downtime, releases: fitting, byContainers } = runbookRow(name);
  return { name, title, summary, downtime, releases: fitting, byContainers };
};

export interface FilledRunbook {
  readonly name: RunbookName;
  readonly title: string;
  readonly summary: string;
  readonly downtime: boolean;
  readonly release: Release;
  /** Null: it does not differ. */
  readonly containers: Containers | null;
  readonly warnings: readonly string[];
  readonly steps: readonly RunbookStep[];
}

/** What `{name}` stands for; places in angle brackets are the person's. */
export const fillPlaces = (text: string, values: RunbookValues): string =>
  text.replaceAll(/\{(\w+)\}/g, (place, name: string) => values[name as keyof RunbookValues] ?? place);

/** Why it cannot be followed there; undefined: it can. */
export const faultOfRunbook = (name: RunbookName, release: Release, own: Containers): string | undefined => {
  const { title, releases: fitting } = runbookRow(name);
  if (!fitting.includes(release))
    return `${releases[release]} cannot: "${title.toLowerCase()}" needs ${releases[fitting[0] ?? '19c']} or higher`;
  if (release === '11g' && own === 'cdb') return '11g R2 has no container databases';
  return undefined;
};

/** The steps for one release, with the application's own values. */
export const fillRunbook = (
  name: RunbookName,
  release: Release,
  own: Containers,
  values: RunbookValues,
): FilledRunbook => {
  const row = runbookRow(name);
  const fill = (text: string): string => fillPlaces(text, values);
  return {
    name,
    title: row.title,
    summary: row.summary,
    downtime: row.downtime,
    release,
    containers: row.byContainers ? own : null,
    warnings: row.warnings,
    steps: row.steps
      .filter((step) => step.releases === undefined || step.releases.includes(release))
      .filter((step) => step.containers === undefined || step.containers === own)
      .map(({ id, title, place, text, warning, sql, shell, expect, command }) => ({
        id,
        place,
        title: fill(title),
        ...(text === undefined ? {} : { text: fill(text) }),
        ...(warning === undefined ? {} : { warning: fill(warning) }),
        ...(sql === undefined ? {} : { sql: fill(sql) }),
        ...(shell === undefined ? {} : { shell: fill(shell) }),
        ...(expect === undefined ? {} : { expect: fill(expect) }),
        ...(command === undefined ? {} : { command: fill(command) }),
      })),
  };
};
