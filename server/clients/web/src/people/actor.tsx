// Who did something: a user, an API token or the service, with the way to its page. An id alone
// does not say which of them it is: where the kind is not known, the audit log has all that it did.

import { Link } from '@tanstack/react-router';
import { useMay } from '../session/may.ts';

export const Actor = ({ id, name, kind }: { id: string; name: string; kind?: string }) => {
  const may = useMay();
  if (kind === 'administrator' && may('tokens:read', { scoped: false }))
    return (
      <Link to="/tokens/$id" params={{ id }} className="link">
        {name}
      </Link>
    );
  if (kind !== 'service' && may('audit:read', { scoped: false }))
    return (
      <Link to="/audit" search={{ actorId: id }} className="link">
        {name}
      </Link>
    );
  return name;
};
