// The assumed behaviour of a release of the database, from profiles/*.json. Every item has its
// grade: known, from a source of profiles/sources.json; inferred; or contradicted, when a second
// source says otherwise. So a real trace changes data and not code.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AttributeName, attributes, CKA } from '../../provider/schema/attributes.ts';
import { CKK, CKO } from '../../provider/schema/constants.ts';
import { CKM, type MechanismName } from '../../provider/schema/mechanisms.ts';

export const profileNames = ['11g', '12c-19c', '23ai'] as const;
export type ProfileName = (typeof profileNames)[number];

export const grades = ['known', 'inferred', 'contradicted'] as const;
export interface Graded {
  readonly grade: (typeof grades)[number];
  /** A name of profiles/sources.json. Of what is inferred there is none. */
  readonly from?: string;
  /** The source that contradicts; `why` says which form decides, and when. */
  readonly against?: string;
  readonly why: string;
}
export interface Item<T> extends Graded {
  readonly value: T;
}
/** `label` and `value` are filled in at the call, the rest is as it stands. */
export interface TemplateItem extends Item<boolean | number | 'label' | 'value' | 'secret-key' | 'data' | 'aes'> {
  readonly attribute: AttributeName;
}
/** A master key of a container: 11g has two. */
export interface MasterKeyRole extends Graded {
  readonly purpose: 'all' | 'column' | 'tablespace';
  readonly idPrefix: string;
  readonly labelPrefix: string;
  readonly labelSuffix: string;
}
export interface Release {
  readonly wallet: Item<'ENCRYPTION_WALLET_LOCATION' | 'TDE_CONFIGURATION'>;
  readonly libraryLocation: Item<boolean>;
  readonly onlineEncryption: Item<boolean>;
  /** The configuration in which REVERSE MIGRATE is accepted. */
  readonly reverse: Item<'FILE' | 'FILE|HSM'>;
  /** HEARTBEAT_BATCH_SIZE. */
  readonly heartbeatBatch: Item<boolean>;
}
type TemplateName = 'generate' | 'find-key' | 'find-data' | 'create-data' | 'ask';

export interface Profile {
  readonly name: ProfileName;
  readonly title: string;
  readonly releases: Readonly<Record<string, Release>>;
  readonly statements: Item<'alter-system' | 'administer'>;
  readonly containers: Item<boolean>;
  readonly reverseMigration: Item<boolean>;
  readonly externalStore: Item<boolean>;
  readonly masterKeys: readonly MasterKeyRole[];
  readonly metadataLabel: Item<string | null>;
  readonly probeLabel: Item<string | null>;
  readonly wrapMechanism: Item<MechanismName>;
  readonly columnMechanism: Item<MechanismName>;
  readonly openChecks: Item<'label'>;
  readonly findMost: Item<number>;
  readonly iv: Item<'zero' | 'random' | 'key-id'>;
  /** Bytes of a key of the database before it is wrapped, for each kind of key. */
  readonly keyBytes: Readonly<Record<'tablespace' | 'column' | 'redo', Item<number>>>;
  readonly heartbeat: Item<'encrypt' | 'session'>;
  readonly heartbeatSeconds: Item<number>;
  readonly failuresToClose: Item<number>;
  readonly templates: Readonly<Record<TemplateName, readonly TemplateItem[]>>;
}

const cache = new Map<ProfileName, Profile>();

export const readProfile = (name: ProfileName): Profile => {
  const known = cache.get(name);
  if (known !== undefined) return known;
  const profile = JSON.parse(readFileSync(join(import.meta.dirname, 'profiles', `${name}.json`), 'utf8')) as Profile;
  cache.set(name, profile);
  return profile;
};

/** The sources of what is known, by name. */
export const readSources = (): Readonly<Record<string, { readonly title: string; readonly section: string }>> =>
  JSON.parse(readFileSync(join(import.meta.dirname, 'profiles/sources.json'), 'utf8'));

/**
 * What is wrong with the grades of a profile: each assumption has one, with its source and its
 * reason.
 */
export const gradeFaults = (profile: unknown, sources: ReadonlySet<string>): readonly string[] => {
  const faults: string[] = [];
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    const item = value as Partial<Graded & { readonly value: unknown; readonly labelPrefix: unknown }>;
    if (!('grade' in item || 'value' in item || 'labelPrefix' in item)) {
      for (const [key, each] of Object.entries(value)) visit(each, `${path}.${key}`);
      return;
    }
    if (!grades.some((grade) => grade === item.grade)) faults.push(`${path} has no grade`);
    if ((item.why ?? '').length <= 10) faults.push(`${path} has no reason`);
    const needed =
      item.grade === 'contradicted' ? [item.from, item.against] : item.grade === 'known' ? [item.from] : [];
    if (needed.some((each) => each === undefined || !sources.has(each))) faults.push(`${path} has no source`);
    if (item.grade === 'inferred' && item.from !== undefined) faults.push(`${path} is inferred, and has a source`);
  };
  visit(profile, '');
  return faults;
};

/** The newest release of a profile. */
export const newestRelease = (profile: Profile): string => Object.keys(profile.releases).at(-1) ?? '';

const templateLine = (name: string, { attribute, value }: TemplateItem): string => {
  if (!(attribute in attributes)) throw new Error(`no attribute is called ${attribute}`);
  const type = CKA[attribute].toString(16);
  const [kind, number] =
    typeof value === 'boolean'
      ? ['bool', value ? 1 : 0]
      : typeof value === 'number'
        ? ['ulong', value]
        : value === 'secret-key'
          ? ['ulong', CKO.SECRET_KEY]
          : value === 'data'
            ? ['ulong', CKO.DATA]
            : value === 'aes'
              ? ['ulong', CKK.AES]
              : [value, 0];
  return ['template', name, type, kind, number].join('\t');
};

/** Writes the part of a profile that a process (driver/token.c) needs. */
export const writeDriverProfile = (profile: Profile, path: string): void => {
  const lines = [
    ...profile.masterKeys.map((role) => ['role', role.idPrefix, role.labelPrefix, role.labelSuffix].join('\t')),
    ...(profile.metadataLabel.value === null ? [] : [`metadata\t${profile.metadataLabel.value}`]),
    ...(profile.probeLabel.value === null ? [] : [`probe\t${profile.probeLabel.value}`]),
    `iv\t${{ zero: 'zero', random: 'random', 'key-id': 'id' }[profile.iv.value]}`,
    `heartbeat\t${profile.heartbeat.value}`,
    `find-most\t${profile.findMost.value}`,
    ...Object.entries(profile.templates).flatMap(([name, items]) => items.map((item) => templateLine(name, item))),
  ];
  writeFileSync(path, `${lines.join('\n')}\n`);
};

export const mechanismNumber = (name: MechanismName): number => CKM[name];

/** The label of a master key on the token. */
export const labelOf = (profile: Profile, id: string): string => {
  const role = profile.masterKeys.find(({ idPrefix }) => id.startsWith(idPrefix));
  if (role === undefined) throw new Error(`${id} is not an id of a master key of ${profile.name}`);
  return `${role.labelPrefix}${id}${role.labelSuffix}`;
};
