// The address that the cloud is given, with a warning where no cloud can reach it.

import { Copyable } from '../ui/page/copy.tsx';
import { Notice } from '../ui/page/notice.tsx';

/** Why a cloud cannot reach the address; null: nothing speaks against it. */
const unreachable = (uriEndpoint: string): string | null => {
  const { hostname } = new URL(uriEndpoint);
  if (/^(localhost|127\..*|\[::1\])$/.test(hostname)) return `${hostname} is this host itself`;
  return hostname.includes('.') || hostname.startsWith('[') ? null : `${hostname} is not a fully qualified name`;
};

export const UriEndpoint = ({ value }: { value: string }) => {
  const fault = unreachable(value);
  return (
    <>
      <Copyable value={value} label="proxy URI endpoint" />
      {fault !== null && (
        <Notice tone="warn" title="The cloud cannot reach this address">
          {fault}. Set <code>server.public_url</code> in dke.toml to the address that the cloud uses.
        </Notice>
      )}
    </>
  );
};
