// The few icons there are, drawn in one style: 16 px, strokes of the text's colour.

const PATHS = {
  home: "M2.5 7.5 8 3l5.500 4.500M4 6.500V13h8V6.500",
  database: "M3 4c0-1.100 2.200-2 5-2s5 .9 5 2-2.200 2-5 2-5-.9-5-2Zm0 0v8c0 1.100 2.200 2 5 2s5-.9 5-2V4M3 8c0 1.100 2.200 2 5 2s5-.9 5-2",
  container: "M2.500 5 8 2l5.500 3v6L8 14l-5.500-3V5Zm0 0L8 8l5.500-3M8 8v6",
  chart: "M2.500 13.500h11M4 11V8M8 11V3M12 11V6",
  plus: "M8 3v10M3 8h10",
  close: "m4 4 8 8M12 4l-8 8",
  chevron: "m6 4 4 4-4 4",
  copy: "M5.500 5.500v-3h8v8h-3M2.500 5.500h8v8h-8v-8Z",
  check: "m3 8.500 3.500 3.500L13 4.500",
  trash: "M2.500 4.500h11M6 4.500v-2h4v2M4 4.500l.7 9h6.600l.7-9M6.700 7v4M9.300 7v4",
  refresh: "M13 3v3.500H9.500M13 6.500A5.300 5.300 0 1 0 13.300 9",
  play: "M5 3v10l8-5-8-5Z",
  stop: "M4 4h8v8H4z",
  pause: "M5.500 3.500v9M10.500 3.500v9",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Zm0-9.500V8l2.500 1.500",
  pin: "M6 2.500h4l-.5 4L12 9H4l2.500-2.500L6 2.500ZM8 9v4.500",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1.500v1M8 13.500v1M1.500 8h1M13.500 8h1M3.400 3.400l.7.7M11.900 11.900l.7.7M3.400 12.600l.7-.7M11.900 4.100l.7-.7",
  moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500Z",
  menu: "M2.500 4h11M2.500 8h11M2.500 12h11",
  warning: "M8 2.500 14 13H2L8 2.500Zm0 4v3M8 11.300v.2",
  info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Zm0-6.500V11M8 5v.2",
  download: "M8 2.500v8M5 7.500l3 3 3-3M2.500 13.500h11",
  upload: "M8 11V3M5 5.500l3-3 3 3M2.500 13.500h11",
  key: "M9.500 6.500a2.500 2.500 0 1 1 1 2L5 13.500H2.500V11L7.800 6.800",
  out: "M6 2.500H3v11h3M7 8h6.500M11 5.500 13.500 8 11 10.500",
  columns: "M2.500 3h11v10h-11V3Zm4 0v10M10 3v10",
  feed: "M2.500 8h2l2-4.500 3 9 2-4.500h2",
  save: "M3 2.500h8L13.500 5v8.500h-11v-11H3ZM5.500 2.500v3.500h5v-3.500M5 13.500V9.500h6v4",
  more: "M3.500 8h.01M8 8h.01M12.500 8h.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Mark({ size = 24 }: { size?: number }) {
  return (
    <svg class="mark" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" />
      <path d="M16 9v15M16 14C13 8 8 6 5.500 8c-1.500 2.500 3 8 10.500 9M16 14c3-6 8-8 10.500-6 1.500 2.500-3 8-10.500 9M16 24l-3 3.500M16 24l3 3.500" />
    </svg>
  );
}
