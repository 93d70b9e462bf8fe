// The compatibility switches of a TDE application: weaker cryptography that its programs may use.

import { useState } from 'react';
import { type CompatibilitySwitch, compatibilityNames, compatibilitySwitches } from '../api/compatibility.ts';
import { applicationPath, applicationsPath } from '../api/paths.ts';
import type { Application } from '../api/types.ts';
import { CheckField } from '../ui/fields/field.tsx';
import { EditDialog } from '../ui/forms/edit-dialog.tsx';
import { Button } from '../ui/page/button.tsx';
import { Panel } from '../ui/page/page.tsx';

interface SwitchesBody {
  readonly switches: readonly CompatibilitySwitch[];
}

const SwitchesDialog = ({ application, onClose }: { application: Application; onClose: () => void }) => {
  const path = applicationPath(application.id);
  return (
    <EditDialog<Application, SwitchesBody>
      title={`Compatibility of “${application.name}”`}
      path={path}
      bodyOf={({ compatibility }) => ({ switches: compatibility })}
      callOf={({ switches }) => ({
        method: 'PUT',
        path: `${path}/compatibility`,
        body: { switches: compatibilityNames.filter((name) => switches.includes(name)) },
      })}
      names={{ switches: 'Switches' }}
      submitLabel="Save switches"
      onClose={onClose}
      renews={[applicationsPath]}
      done={`Compatibility switches of “${application.name}” saved`}
    >
      {({ body: { switches: on }, onBody }) => (
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
                onValue={(checked) =>
                  onBody({ switches: checked ? [...on, name] : on.filter((each) => each !== name) })
                }
              />
            );
          })}
        </>
      )}
    </EditDialog>
  );
};

export const Compatibility = ({ application }: { application: Application }) => {
  const [changing, setChanging] = useState(false);
  const { compatibility } = application;
  return (
    <Panel
      title="Compatibility"
      description="Weaker cryptography that programs of this application may use."
      actions={
        <Button needs="applications:manage" opens onClick={() => setChanging(true)}>
          Change switches
        </Button>
      }
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
