// The choice between light, dark and the system's preference.

import { ToggleGroup } from 'radix-ui';
import { chooseTheme, type Theme, themes, useTheme } from '../../session/theme.ts';
import { Icon, type IconName } from './icon.tsx';

const themeNames: Readonly<Record<Theme, { text: string; icon: IconName }>> = {
  system: { text: 'Same as system', icon: 'system' },
  light: { text: 'Light', icon: 'sun' },
  dark: { text: 'Dark', icon: 'moon' },
};

export const ThemeToggle = () => {
  const theme = useTheme();
  return (
    <ToggleGroup.Root
      type="single"
      value={theme}
      onValueChange={(value) => {
        const chosen = themes.find((candidate) => candidate === value);
        if (chosen !== undefined) chooseTheme(chosen);
      }}
      aria-label="Theme"
      className="inline-flex rounded-md border border-line bg-sunken p-0.5"
    >
      {themes.map((choice) => (
        <ToggleGroup.Item
          key={choice}
          value={choice}
          aria-label={themeNames[choice].text}
          title={themeNames[choice].text}
          className="inline-flex size-7 items-center justify-center rounded text-muted hover:text-ink data-[state=on]:bg-surface data-[state=on]:text-ink data-[state=on]:shadow-raised"
        >
          <Icon name={themeNames[choice].icon} />
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
};
