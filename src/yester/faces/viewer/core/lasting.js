// How long something took, in the two largest units.

const UNITS = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];

export function lasting(ms) {
  if (!(ms >= 1000)) return "under 1 s";
  const first = UNITS.findIndex(([, size]) => ms >= size);
  const [name, size] = UNITS[first], whole = Math.floor(ms / size), smaller = UNITS[first + 1];
  const rest = smaller && whole < 10 ? Math.floor((ms % size) / smaller[1]) : 0;
  return `${whole} ${name}${rest ? ` ${rest} ${smaller[0]}` : ""}`;
}
