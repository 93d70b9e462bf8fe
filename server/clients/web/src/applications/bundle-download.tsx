// The configuration bundle for one database host: the user chooses its system, and this browser
// creates the archive.

import { useState } from 'react';
import {
  type Architecture,
  architectureNames,
  type Database,
  databaseNames,
  databases,
  type System,
  systemNames,
  systems,
} from '../../../../domain/bundle-targets.ts';
import { makeBundle } from '../api/bundle.ts';
import type { IssuedAccessGuid } from '../api/types.ts';
import { SelectField } from '../ui/fields/field.tsx';
import { saveFile } from '../ui/fields/secret-once.tsx';
import { Button } from '../ui/page/button.tsx';
import { Notice } from '../ui/page/notice.tsx';

export const BundleDownload = ({ applicationName, issued }: { applicationName: string; issued: IssuedAccessGuid }) => {
  const [system, setSystem] = useState<System>('oracle-linux');
  const [database, setDatabase] = useState<Database>('oracle');
  const [architecture, setArchitecture] = useState<Architecture>('x86_64');
  const [busy, setBusy] = useState(false);
  const [missing, setMissing] = useState<readonly string[]>([]);
  const [fault, setFault] = useState<string | null>(null);

  const download = async (withoutPackages: boolean): Promise<void> => {
    setBusy(true);
    setFault(null);
    setMissing([]);
    try {
      const made = await makeBundle({ system, database, architecture }, applicationName, issued, withoutPackages);
      saveFile(`dke-${applicationName.replace(/[^A-Za-z0-9.-]+/g, '-')}.tar.gz`, made.archive, 'application/gzip');
      setMissing(made.missing);
    } catch (error) {
      setFault(error instanceof Error ? error.message : 'The bundle could not be created.');
    } finally {
      setBusy(false);
    }
  };

  return (
    <div className="space-y-2">
      <p className="font-medium">Configuration bundle</p>
      <p className="text-muted">
        One archive for the database host: pkcs11.toml, the certificate to trust, packages, checksums and install.sh.
        Copy it over a protected connection: it contains the access_guid.
      </p>
      <div className="grid gap-3 sm:grid-cols-3">
        <SelectField
          label="Operating system"
          value={system}
          choices={systemNames.map((value) => ({ value, text: systems[value].label }))}
          onValue={(value) => setSystem(value as System)}
        />
        <SelectField
          label="Database"
          value={database}
          choices={databaseNames.map((value) => ({ value, text: databases[value].label }))}
          onValue={(value) => setDatabase(value as Database)}
        />
        <SelectField
          label="Architecture"
          value={architecture}
          choices={architectureNames.map((value) => ({ value, text: value }))}
          onValue={(value) => setArchitecture(value as Architecture)}
        />
      </div>
      <Button icon="download" busy={busy} onClick={() => void download(false)} className="max-sm:w-full">
        Download bundle
      </Button>
      {fault === null ? null : (
        <Notice tone="danger" title="The packages could not be downloaded">
          <p>{fault}</p>
          <Button onClick={() => void download(true)}>Download bundle without packages</Button>
        </Notice>
      )}
      {missing.length === 0 ? null : (
        <Notice tone="info" title="The bundle contains no package for this host">
          Install {missing.join(' and ')} first. The bundle's README.txt has the commands.
        </Notice>
      )}
    </div>
  );
};
