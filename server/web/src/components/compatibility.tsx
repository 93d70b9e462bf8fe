// The compatibility switches of a TDE application: weaker cryptography that its programs may use.

import { useState } from 'react';
import { type CompatibilitySwitch, compatibilityNames, compatibilitySwitches } from '../api/compatibility.ts';
import { useFresh } from '../api/fresh.ts';
import type { Application } from '../api/types.ts';
import { applicationPath, applicationsPath } from './applications.ts';
import { Button } from './button.tsx';
import { CheckField } from './field.tsx';
import { FormDialog } from './form.tsx';
import { Panel } from './page.tsx';
import { ProblemView } from './problem-view.tsx';

const SwitchesDialog = ({ application, onClose }: { application: Application; onClose: () => void }) => {
  const path = applicationPath(application.id);
  const fresh = useFresh<Application>(path);
  const [on, setOn] = useState<readonly CompatibilitySwitch[]>(application.compatibility);
  return (
    <FormDialog<Application>
      title={`Compatibility of “${application.name}”`}
      call={{
        method: 'PUT',
        path: `${path}/compatibility`,
        body: { switches: compatibilityNames.filter((name) => on.includes(name)) },
      }}
      ifMatch={fresh.data?.etag}
      submitLabel="Save switches"
      submitDisabled={fresh.data === undefined}
      onCancel={onClose}
      renews={[applicationsPath]}
      done={`Compatibility switches of “${application.name}” saved`}
    >
      {() => (
        <>
          <p>Enable only what a program requires. Changes apply from the next call.</p>
          {compatibilityNames.map((name) => {
            const { label, cost } = compatibilitySwitches[name];
            return (
              <CheckField
                key={name}
                label={label}
                help={cost}
                checked={on.includes(name)}
                onValue={(checked) => setOn(checked ? [...on, name] : on.filter((each) => each !== name))}
              />
            );
          })}
          {fresh.error !== null && <ProblemView error={fresh.error} onRetry={() => void fresh.refetch()} compact />}
        </>
      )}
    </FormDialog>
  );
};

export const Compatibility = ({ application }: { application: Application }) => {
  const [changing, setChanging] = useState(false);
  const { compatibility } = application;
  return (
    <Panel
      title="Compatibility"
      description="Weaker cryptography that programs of this application may use."
      actions={<Button onClick={() => setChanging(true)}>Change switches</Button>}
    >
      {compatibility.length === 0 ? (
        <p>None. Weak cryptography is refused.</p>
      ) : (
        <ul className="list-disc pl-5">
          {compatibility.map((name) => (
            <li key={name}>{compatibilitySwitches[name].label}</li>
          ))}
        </ul>
      )}
      {changing && <SwitchesDialog application={application} onClose={() => setChanging(false)} />}
    </Panel>
  );
};
