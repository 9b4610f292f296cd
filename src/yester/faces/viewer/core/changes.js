// What is looked at may be changed elsewhere: by an agent, in a terminal, in another tab.

const PAUSE = 700; // ms; while much happens it is not asked for at every event

/** Calls `look()` when the window is come back to, and soon after anything happened. */
export function recheck({ signal, listen }, look) {
  let late = 0;
  const soon = () => {
    late ||= setTimeout(async () => {
      late = 0;
      if (!signal.aborted) await look().catch(() => {}); // the next time may do; the view stands as it is
    }, PAUSE);
  };
  addEventListener("focus", soon, { signal });
  document.addEventListener("visibilitychange", () => document.hidden || soon(), { signal });
  signal.addEventListener("abort", () => clearTimeout(late));
  listen(soon);
}
