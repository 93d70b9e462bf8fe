// An issued access_guid, shown once, with the file that a database host needs: pkcs11.toml, saved
// from the same answer so that the credential does not travel twice.

import { useEffect, useState } from 'react';
import { authorityPath, withAuthority } from '../../../bundle/bundle-files.ts';
import { toHex } from '../api/hex.ts';
import type { IssuedAccessGuid } from '../api/types.ts';
import { SecretOnceDialog, SecretValue, saveFile, secretFile } from '../ui/fields/secret-once.tsx';
import { Button } from '../ui/page/button.tsx';
import { BundleDownload } from './bundle-download.tsx';

/** The output of sha256sum for the file on the database host. */
const Checksum = ({ text }: { text: string }) => {
  const [sum, setSum] = useState('');
  useEffect(() => {
    void crypto.subtle
      .digest('SHA-256', new TextEncoder().encode(text))
      .then((hash) => setSum(toHex(new Uint8Array(hash))));
  }, [text]);
  return (
    <p className="text-muted">
      SHA-256 of the file. Compare it with <code>sha256sum pkcs11.toml</code> on the host:{' '}
      <code className="break-all text-xs">{sum}</code>
    </p>
  );
};

/** The file alone, with the certificate that it needs where the service has one of its own. */
const ConfigurationFile = ({ issued: { config } }: { issued: IssuedAccessGuid }) => {
  const authority = config.ca_pem;
  const text = withAuthority(config.pkcs11_toml, authority);
  return (
    <div className="space-y-2">
      <p className="font-medium">Configuration file only</p>
      <p className="text-muted">
        Save the file on the database host, at the path in <code>DKE_PKCS11_CONF</code>. Only the database's OS user may
        read it{authority !== null && '. The file names the certificate of this service, which the host must have too'}:
      </p>
      <pre className="overflow-x-auto rounded-md bg-sunken p-3 text-xs">
        chown oracle:oinstall pkcs11.toml{'\n'}chmod {config.mode} pkcs11.toml
        {authority !== null && `\ninstall -m 644 ca.pem ${authorityPath}`}
      </pre>
      <p className="text-muted">
        Install the library as <code className="break-all">{config.library}</code>.
      </p>
      <div className="flex flex-wrap gap-2">
        <Button icon="download" onClick={() => saveFile('pkcs11.toml', text, 'application/toml')}>
          Download pkcs11.toml
        </Button>
        {authority !== null && (
          <Button icon="download" onClick={() => saveFile('ca.pem', authority, 'application/x-pem-file')}>
            Download ca.pem
          </Button>
        )}
      </div>
      <Checksum text={text} />
    </div>
  );
};

export const AccessGuidDialog = ({
  applicationName,
  issued,
  onClose,
}: {
  applicationName: string;
  issued: IssuedAccessGuid;
  onClose: () => void;
}) => (
  <SecretOnceDialog
    title={`Credential of “${applicationName}”`}
    notice="The access_guid is shown only once: the service keeps a keyed hash of it. Anyone who has it can use this application's master keys."
    taken="I have stored the access_guid, the bundle or the configuration file"
    onClose={onClose}
  >
    <SecretValue label="access_guid" value={issued.accessGuid} file={secretFile('access-guid', applicationName)} />
    <SecretValue label="server_url (contains the access_guid)" value={issued.config.server_url} />
    <BundleDownload applicationName={applicationName} issued={issued} />
    <ConfigurationFile issued={issued} />
  </SecretOnceDialog>
);
