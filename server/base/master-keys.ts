// Which keys are master keys of a database, and the rules about what they must be: a master key
// decrypts, and it is stored, as its metadata is. A key that encrypts and never decrypts, or is
// gone after a restart, loses data in silence, because a database encrypts for months before it
// needs the key again. Agent and service both ask here: the agent for the defaults and the text
// that names the attribute, the service for every key that it stores, changes or uses.
//
// The label is the caller's word (any process that has the application's credential), and so is
// what the key may do. Both are only compared: a label makes a key stricter, never freer. Who names
// a wrapping key like a master key gets a key that decrypts, which wraps nothing sensitive
// (operations/tde/wrap-token-key.ts).

/** The labels that Oracle Database gives to its master keys, of the database and of tablespaces. */
const masterKeyLabel = /^ORACLE\.(?:TDE|TSE)\.HSM\.MK\./;
/** The labels that Oracle Database gives to the objects of data that describe its master keys. */
const metadataLabel = /^ORACLE\.SECURITY\.KM\.ENCRYPTION\./;

/** Every new object is asked, and most labels differ in their first byte, an O, already. */
const begins = (form: RegExp, label: Uint8Array): boolean =>
  label[0] === 0x4f &&
  form.test(Buffer.from(label.buffer, label.byteOffset, Math.min(label.length, 32)).toString('latin1'));
export const isMasterKeyLabel = (label: Uint8Array): boolean => begins(masterKeyLabel, label);
export const isMetadataLabel = (label: Uint8Array): boolean => begins(metadataLabel, label);

interface KeyFacts {
  readonly class: string;
  readonly algorithm: string | null;
  /** Base64. */
  readonly label: string;
  readonly usages: readonly string[];
  /**
   * Whether the key has wrapped a sensitive key: then it never decrypts again, whatever its usages
   * say.
   */
  readonly wrappedSensitive?: boolean;
}

/** Keys of other types do not encrypt. */
const isMasterKey = ({ class: objectClass, algorithm, label }: KeyFacts): boolean =>
  objectClass === 'secret-key' && algorithm === 'aes' && isMasterKeyLabel(Buffer.from(label, 'base64'));

/**
 * Whether this is a master key under which nothing can be read: it must not be created, and it must
 * not encrypt.
 */
export const isUnreadableMasterKey = (key: KeyFacts): boolean =>
  isMasterKey(key) && (key.wrappedSensitive === true || !key.usages.includes('decrypt'));
