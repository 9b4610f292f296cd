// A view is what stands behind the # of the address: #/session/S12?limit=50. So back, forward,
// bookmarks and reloading work without the server knowing any of them.

/** `{path: "/session/S12", query: {limit: "50"}}` */
export function here() {
  const [path, query] = (location.hash.slice(1) || "/").split(/\?(.*)/s);
  return { path: path || "/", query: Object.fromEntries(new URLSearchParams(query || "")) };
}

/** The address of a view; what is empty is left out. */
export function to(path, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const text = new URLSearchParams(kept).toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

export function go(path, query = {}) {
  location.hash = to(path, query);
}

/** Where an action leads, unless somebody has left the view `from` meanwhile. That the view was only drawn
 *  again (its own change came back as an event, before the answer) is no reason to stay. */
export function lead(from, path) {
  if (here().path === from) go(path);
}

/** The same view with other words in its address, without a step in the history. */
export function adjust(query) {
  history.replaceState(null, "", to(here().path, query));
}

/** `match("/session/:id", "/session/S12")` is `{id: "S12"}`; null where it does not fit. */
export function match(pattern, path) {
  const wanted = pattern.split("/"), given = path.split("/");
  if (wanted.length !== given.length) return null;
  const found = {};
  for (const [place, word] of wanted.entries()) {
    if (word.startsWith(":")) {
      try {
        found[word.slice(1)] = decodeURIComponent(given[place]);
      } catch {
        return null; // a % that means nothing
      }
    } else if (word !== given[place]) return null;
  }
  return found;
}
