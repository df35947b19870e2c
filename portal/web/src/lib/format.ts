// Numbers, sizes and times as people read them.

const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (n: number): string => whole.format(n);
export const brief = (n: number): string => (n < 10_000 ? whole.format(n) : compact.format(n));
export const plural = (n: number, noun: string, many = `${noun}s`): string => `${count(n)} ${n === 1 ? noun : many}`;

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let value = n / 1024;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

export const percent = (share: number): string =>
  share > 0 && share < 0.001 ? "< 0.1 %" : `${(share * 100).toFixed(share < 0.1 && share > 0 ? 1 : 0)} %`;

/** `2026-11-20 10:00:03 UTC` */
export function utc(unixSeconds: number): string {
  const date = new Date(unixSeconds * 1000);
  if (Number.isNaN(date.getTime())) return "beyond the calendar";
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

export const decimals = (n: number, digits = 2): string =>
  n.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
