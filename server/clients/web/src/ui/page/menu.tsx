// Actions on one row or page that do not deserve a button each. Each opens a dialog, so each ends
// with “…”. Not modal, so that nothing is injected into the page's style. What is chosen is done
// when the menu has closed and the focus is back at its button: a dialog that it opens then gives
// the focus back to there.

import { DropdownMenu } from 'radix-ui';
import { type ReactNode, useRef } from 'react';
import type { Permission } from '../../api/types.ts';
import { useMay } from '../../session/may.ts';
import { Icon, type IconName } from './icon.tsx';

export interface MenuAction {
  readonly text: string;
  /** Who lacks it does not see the action. */
  readonly needs: Permission;
  readonly icon: IconName;
  readonly onSelect: () => void;
  readonly danger?: boolean;
}

interface ActionMenuProps {
  readonly label: string;
  readonly actions: readonly MenuAction[];
}

export const ActionMenu = ({ label, actions: all }: ActionMenuProps): ReactNode => {
  const may = useMay();
  const actions = all.filter(({ needs }) => may(needs));
  const trigger = useRef<HTMLButtonElement>(null);
  const chosen = useRef<MenuAction | null>(null);
  if (actions.length === 0) return null;
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger
        ref={trigger}
        aria-label={label}
        title={label}
        className="inline-flex min-h-8 items-center gap-1 rounded-md border border-line px-2.5 text-xs font-medium text-muted hover:bg-hover hover:text-ink data-[state=open]:bg-hover"
      >
        Actions
        <Icon name="chevron" className="size-3 rotate-90" />
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align="end"
          sideOffset={4}
          collisionPadding={8}
          onCloseAutoFocus={(event) => {
            const action = chosen.current;
            if (action === null) return;
            chosen.current = null;
            event.preventDefault();
            trigger.current?.focus();
            action.onSelect();
          }}
          className="rise z-20 min-w-44 rounded-lg border border-line bg-raised p-1 shadow-float"
        >
          {actions.map((action) => (
            <DropdownMenu.Item
              key={action.text}
              onSelect={() => {
                chosen.current = action;
              }}
              className={`flex min-h-9 items-center gap-2.5 rounded-md px-2.5 py-1.5 outline-none data-[highlighted]:bg-hover ${action.danger === true ? 'text-danger data-[highlighted]:bg-danger-soft' : ''}`}
            >
              <Icon name={action.icon} />
              {action.text}…
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
};
