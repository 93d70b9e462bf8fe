// The console's icons: drawn on a 20 x 20 grid with one stroke width. Decorative: the text next to
// an icon has the meaning.

const shapes = {
  overview: 'M3 10a7 7 0 0 1 14 0M10 10l3.2-3.2M3 10v2.5M17 10v2.5M5.5 15.5h9',
  vault: 'M3.5 4.5h13v11h-13zM5.5 15.5V17M14.5 15.5V17M10 7.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM10 10V8.6',
  key: 'M7 3.8a3.7 3.7 0 1 0 0 7.4 3.7 3.7 0 0 0 0-7.4ZM9.7 10.2l6.1 6.1M13.2 13.7l-1.7 1.7M15.8 16.3l1.2-1.2',
  group: 'M10 3.2 17 7l-7 3.8L3 7zM3 10.4l7 3.8 7-3.8M3 13.6l7 3.8 7-3.8',
  application:
    'M4 5.5C4 4.1 6.7 3 10 3s6 1.1 6 2.5S13.3 8 10 8 4 6.9 4 5.5ZM4 5.5v9C4 15.9 6.7 17 10 17s6-1.1 6-2.5v-9M4 10c0 1.4 2.7 2.5 6 2.5s6-1.1 6-2.5',
  endpoint:
    'M6.2 15.5a3.7 3.7 0 0 1-.5-7.37 4.7 4.7 0 0 1 9.1-.3 3.85 3.85 0 0 1-.6 7.67ZM10 12.8V9.2M8.3 10.8 10 9.1l1.7 1.7',
  audit: 'M5 3h7l3.5 3.5V17H5zM12 3v3.5h3.5M7.5 10.5h5.5M7.5 13.5h3.5',
  token: 'M3 6.5h14v2.2a1.5 1.5 0 0 0 0 2.8v2.2H3v-2.2a1.5 1.5 0 0 0 0-2.8zM12 6.5v1.2M12 9.5v1.2M12 12.5v1.2',
  sun: 'M10 6.8a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4ZM10 2.5v1.4M10 16.1v1.4M2.5 10h1.4M16.1 10h1.4M4.7 4.7l1 1M14.3 14.3l1 1M15.3 4.7l-1 1M5.7 14.3l-1 1',
  moon: 'M16.5 11.8A6.8 6.8 0 0 1 8.2 3.5a6.8 6.8 0 1 0 8.3 8.3Z',
  system: 'M3 4h14v9.5H3zM7 16.5h6M10 13.5v3',
  menu: 'M3.5 6h13M3.5 10h13M3.5 14h13',
  close: 'M5 5l10 10M15 5 5 15',
  copy: 'M7 7h9.5v9.5H7zM13 7V3.5H3.5V13H7',
  check: 'M4 10.5l4 4 8-9',
  warning: 'M10 3.2 17.5 16.5h-15zM10 8.2v4M10 14.2v.3',
  info: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14ZM10 9.2v4.3M10 6.5v.3',
  blocked: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14ZM5.2 5.2l9.6 9.6',
  pause: 'M7.2 5v10M12.8 5v10',
  trash: 'M4 5.5h12M8 5.5V3.5h4v2M5.5 5.5l.7 11h7.6l.7-11M8.5 8.5v5M11.5 8.5v5',
  destroyed: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14ZM7.3 7.3l5.4 5.4M12.7 7.3l-5.4 5.4',
  active: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14ZM6.8 10.2l2.3 2.3 4.2-4.7',
  chevron: 'M8 5l5 5-5 5',
  plus: 'M10 4v12M4 10h12',
  download: 'M10 3.5v9M6.5 9.3 10 12.8l3.5-3.5M4 16.5h12',
  refresh: 'M16 10a6 6 0 1 1-1.8-4.3L16 7.5M16 3.8v3.7h-3.7',
  signOut: 'M8 3.5H4v13h4M12.5 6.5 16 10l-3.5 3.5M16 10H8',
  filter: 'M3 5h14M6 10h8M8.5 15h3',
  clock: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14ZM10 6.5V10l2.5 1.8',
  pulse: 'M2.5 10.5h3.2l2-5.2 3.6 9.4 2.2-4.2h4',
  shield: 'M10 2.8 16 5v4.6c0 3.6-2.4 6.2-6 7.6-3.6-1.4-6-4-6-7.6V5zM7.4 9.9l1.9 1.9 3.4-3.6',
  search: 'M8.8 3.5a5.3 5.3 0 1 0 0 10.6 5.3 5.3 0 0 0 0-10.6ZM12.6 12.6l4 4',
  bell: 'M5.2 13.8V9a4.8 4.8 0 0 1 9.6 0v4.8l1.4 1.4H3.8zM8.4 15.4a1.7 1.7 0 0 0 3.2 0',
  user: 'M10 3.5a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4ZM3.8 16.8c.6-3.2 3-5 6.2-5s5.6 1.8 6.2 5',
  users:
    'M7.5 4a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM2.3 16c.5-2.8 2.5-4.4 5.2-4.4s4.7 1.6 5.2 4.4M13 4.3a2.6 2.6 0 0 1 0 5.1M14.6 11.9c1.7.6 2.8 2 3.1 4.1',
  tenant: 'M4 16.5v-12h7v12M11 8.5h5v8M2.8 16.5h14.4M6.3 7.5h2.4M6.3 10.5h2.4M6.3 13.5h2.4',
  snapshot: 'M3.5 6h3l1.4-2h4.2l1.4 2h3v10h-13zM10 8.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6Z',
  book: 'M4 4.2c2.2-.6 4.2-.4 6 .8 1.8-1.2 3.8-1.4 6-.8v11.3c-2.2-.6-4.2-.4-6 .8-1.8-1.2-3.8-1.4-6-.8zM10 5v11.3',
  gear: 'M10 7.3a2.7 2.7 0 1 0 0 5.4 2.7 2.7 0 0 0 0-5.4ZM10 2.8v2M10 15.2v2M2.8 10h2M15.2 10h2M4.9 4.9l1.4 1.4M13.7 13.7l1.4 1.4M15.1 4.9l-1.4 1.4M6.3 13.7l-1.4 1.4',
  thumb: 'M3.5 9h3v7.5h-3zM6.5 9l3-5.7c1.4 0 2 .8 1.8 2L10.8 8h4.7l-1.2 7.2c-.2.8-.7 1.3-1.6 1.3H6.5',
  server: 'M3.5 4h13v5h-13zM3.5 11h13v5h-13zM6.2 6.5h.1M6.2 13.5h.1',
} as const;

export type IconName = keyof typeof shapes;

export const Icon = ({ name, className = 'size-4' }: { name: IconName; className?: string }) => (
  <svg
    viewBox="0 0 20 20"
    className={`shrink-0 ${className}`}
    fill="none"
    stroke="currentColor"
    strokeWidth="1.5"
    strokeLinecap="round"
    strokeLinejoin="round"
    aria-hidden="true"
    focusable="false"
  >
    <path d={shapes[name]} />
  </svg>
);

export const Mark = ({ className = 'size-8' }: { className?: string }) => (
  <svg viewBox="0 0 32 32" className={`shrink-0 ${className}`} aria-hidden="true" focusable="false">
    <rect width="32" height="32" rx="8" className="fill-accent" />
    <g fill="none" className="stroke-on-accent" strokeWidth="2.6" strokeLinecap="round">
      <circle cx="16" cy="12.5" r="4.5" />
      <path d="M16 17v8m0-3.2h4" />
    </g>
  </svg>
);
