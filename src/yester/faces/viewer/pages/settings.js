// Every setting, from the one table that the command line reads too. What neither sends data, names
// a path nor guards what is stored can be changed here; the rest says where.

import { get, patch, post } from "/core/api.js";
import { copyable, ticked } from "/core/clipboard.js";
import { h } from "/core/dom.js";
import { guard } from "/core/drafts.js";
import { count, dayOf, when } from "/core/format.js";
import { grantName } from "/core/grant.js";
import { acting, notify } from "/core/parts.js";

export const title = () => "Settings";

const GROUPS = [
  ["What is read and kept", /_dirs$|^(exclude|thinking|subagents|skip_tools|batch_window_ms)$/],
  ["Recall and what is injected", /^(ranking$|recency_|cross_project$|max_inject$|last_exchange$|start_tokens$|announce$|tell\.)/],
  ["Search by meaning", /^embed/],
  ["Running", /^(worker_|http_|spool_|backups_)/],
  ["Language model", /^llm\./, "None is needed. All of this sends data or spends money, so it is set in the file alone."],
  ["Archive of sessions", /^archive\./],
  ["More", /./],
];

export async function show({ query, signal, again }) {
  const below = Promise.all(["/api/grants", "/api/roam", "/api/share"].map((path) => get(path, {}, signal)));
  below.catch(() => {}); // said where it is drawn
  const { file, settings } = await get("/api/settings", {}, signal);
  const changed = query.show === "changed";
  const left = new Set(settings.filter((one) => !changed || one.origin !== "default"));
  const groups = GROUPS.map(([name, fits, says]) => {
    const own = [...left].filter((one) => fits.test(one.name));
    own.forEach((one) => left.delete(one));
    return own.length > 0 && h("section", {}, h("h2", {}, name), says && h("p.quiet.small", {}, says), h("div.settings-rows", {}, own.map((one) => row(one, file))));
  });
  const view = h("div.view.settings", {},
    h("div.tools", {}, h("h1", {}, "Settings"),
      h("nav.ranges", { "aria-label": "Which" }, [["", "All"], ["changed", "Changed"]].map(([is, name]) =>
        h("a.chip", { href: is ? `#/settings?show=${is}` : "#/settings", "aria-current": (query.show ?? "") === is && "true" }, name)))),
    h("p.quiet", {}, "Settings are kept in ", h("code", {}, file), "; a change made here is written to that file, and a running worker picks it up. Settings that send data, name a path or protect what is stored cannot be changed from a browser: open “How to change it” beside them for the line to write into the file."),
    groups.some(Boolean) ? groups : h("section.notice", {}, h("h2", {}, "Nothing was changed"), h("p", {}, "All settings have their defaults.")));
  // They stand below everything else, which need not wait for them.
  below.then(([{ grants }, roam, share]) => changed || view.append(machinesOf(roam), sharedOf(share.projects), tabsOf(grants, again))).catch((error) => error.name === "AbortError" || notify(error));
  guard(() => view.querySelector(".setting form [type=submit]:not(:disabled)") !== null, signal);
  return view;
}

/** The machines of one owner that are kept in step by a log (`yester roam`). */
function machinesOf({ on, to, machines, waiting, private: kept, last, problems }) {
  const title = h("h2", { id: "machines" }, "Your machines");
  if (!on) return h("section.unlocked", {}, title, h("p.quiet.small", {}, "This memory stays on this machine. To keep your own machines in step, over a folder, ssh or git, encrypted:"), copyable("yester roam --to FOLDER"));
  const waits = waiting - kept;
  return h("section.unlocked", {}, title,
    h("p.quiet.small", {}, "Kept in step over ", h("code", {}, to), last ? [", last ", when(last)] : ", not yet", ". ",
      waits ? `${count(waits)} ${waits === 1 ? "item waits" : "items wait"} to be sent` : "Nothing waits to be sent", kept > 0 && `; ${count(kept)} of private projects stay here`, "."),
    problems.map((one) => h("p.wrong", { role: "alert" }, one)),
    h("table.cards", { "aria-labelledby": "machines" },
      h("thead", {}, h("tr", {}, ["Machine", "Last wrote", "Items from there"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, machines.map((one) => h("tr", {},
        h("td", { "data-label": "Machine" }, one.name || one.machine, one.own && [" ", h("span.chip.good", {}, "this one")]),
        h("td", { "data-label": "Last wrote" }, one.seen ? when(one.seen) : "not yet"),
        h("td", { "data-label": "Items from there" }, one.own ? "–" : count(one.items)))))));
}

/** Projects that a team shares over a server (`yester share`). */
function sharedOf(projects) {
  const title = h("h2", { id: "shared" }, "Shared with a team");
  if (!projects.length) return h("section.unlocked", {}, title, h("p.quiet.small", {}, "No project is shared. To share one over a server of your team, without secrets, rules and notes:"), copyable("yester share PROJECT --to URL --dry-run"));
  const states = { on: "shared", reading: "read only", ending: "being withdrawn", ended: "shared no more" };
  return h("section.unlocked", {}, title,
    projects.flatMap((one) => [...one.problems, ...one.refused.map(({ why, items }) => `${one.project}: not taken: ${count(items.length)} (${why})`)]).map((text) => h("p.wrong", { role: "alert" }, text)),
    h("table.cards", { "aria-labelledby": "shared" },
      h("thead", {}, h("tr", {}, ["Project", "Over", "State", "Waiting", "Here of others", "Last in step"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, projects.map((one) => h("tr", {},
        h("td", { "data-label": "Project" }, one.project),
        h("td", { "data-label": "Over" }, h("code", {}, one.to), ` as ${one.user}`),
        h("td", { "data-label": "State" }, states[one.state], one.ended && `: ${one.ended}`),
        h("td", { "data-label": "Waiting" }, count(one.waiting)),
        h("td", { "data-label": "Here of others" }, Object.entries(one.others).map(([user, number]) => `${count(number)} of ${user}`).join(", ") || "none"),
        h("td", { "data-label": "Last in step" }, one.last ? when(one.last) : "not yet"))))));
}

/** Tabs that may come back without a new link. */
function tabsOf(grants, again) {
  const lock = async (names) => {
    await post("/api/grants/revoke", { names });
    notify(names.length > 1 ? `${count(names.length)} tabs are locked.` : "The tab is locked.");
    again();
  };
  const others = grants.map((one) => one.name).filter((name) => name !== grantName());
  return h("section.unlocked", {}, h("h2", { id: "unlocked" }, "Unlocked tabs"),
    h("p.quiet.small", {}, "A tab that was let in stays unlocked for 30 days, also when the server is started again; its key is kept in that tab alone, and here only as a hash. A tab that was closed cannot come back, but stands here until its days are over."),
    h("table.cards", { "aria-labelledby": "unlocked" },
      h("thead", {}, h("tr", {}, ["Browser", "Let in", "Last came back", "Until", ""].map((name) => h("th", { scope: "col" }, name || h("span.unseen", {}, "Lock"))))),
      h("tbody", {}, grants.map((one) => h("tr", {},
        h("td", { "data-label": "Browser" }, one.browser || "A program", one.origin !== "user" && " (opened by a program)", one.name === grantName() && [" ", h("span.chip.good", {}, "this tab")]),
        h("td", { "data-label": "Let in" }, when(one.created)), h("td", { "data-label": "Last came back" }, when(one.used)), h("td", { "data-label": "Until" }, dayOf(one.expires)),
        h("td", {}, h("button.small", { on: { click: acting(() => lock([one.name])) } }, "Lock", h("span.unseen", {}, ` ${one.browser}, ${one.name.slice(0, 6)}`))))))),
    others.length > 0 && h("p", {}, h("button", { on: { click: acting(() => lock(others)) } }, "Lock all other tabs")));
}

const text = (value) => (Array.isArray(value) ? value.join(", ") || "(none)" : value === "" ? "(empty)" : String(value));

function row(one, file) {
  const id = `setting-${one.name.replace(/\W/g, "-")}`;
  const node = h("div.setting", { role: "group", "aria-labelledby": id },
    h("div.about", {}, h("h3", { id }, one.name), h("p.small", { id: `${id}-help` }, ticked(one.help))),
    h("div.value", {}, one.writable ? [editor(one, id, (next) => redraw(next)), meta(one)] : fixed(one, file)));
  const redraw = (next) => {
    const fresh = row(next, file);
    node.replaceWith(fresh);
    fresh.querySelector("input, textarea")?.focus();
  };
  return node;
}

const own = (origin) => origin !== "default" && origin !== "config.toml";

const meta = (one) => h("p.meta", {}, "from ", h("b", {}, own(one.origin) ? `$${one.origin}` : one.origin),
  !one.secret && one.origin !== "default" && [" · default ", h("code", {}, text(one.default))],
  own(one.origin) && one.writable && " · the variable goes before what is changed here");

/** `value` of a setting that is not to be changed here, and the words that change it in the file. */
function fixed(one, file) {
  const [section, name] = one.name.includes(".") ? one.name.split(".") : ["", one.name];
  const written = one.secret ? '"…"' : JSON.stringify(one.default);
  return [h("code.is", {}, text(one.value)),
    h("div.under", {}, meta(one), h("details.how", {}, h("summary", {}, "How to change it", h("span.unseen", {}, `: ${one.name}`)),
      h("p.small", {}, "With an editor, in ", h("code", {}, file), section ? [", in the section ", h("code", {}, `[${section}]`)] : ", above the first section", ":"),
      copyable(`${name} = ${written}`)))];
}

function editor(one, id, redraw) {
  const wrong = h("p.wrong", { id: `${id}-wrong`, role: "alert" });
  const many = Array.isArray(one.value), flag = typeof one.value === "boolean";
  const props = { id: `${id}-value`, "aria-labelledby": id, "aria-describedby": `${id}-help ${id}-wrong`, autocomplete: "off", spellcheck: "false" };
  const field = flag ? h("input", { ...props, type: "checkbox", checked: one.value })
    : many ? h("textarea", { ...props, rows: Math.min(8, Math.max(2, one.value.length)), value: one.value.join("\n") })
      : h("input", { ...props, type: "text", inputmode: typeof one.value === "number" ? "decimal" : "text", value: String(one.value) });
  const save = h("button.main.small", { type: "submit", disabled: true }, "Save");
  const given = () => (flag ? field.checked : many ? field.value.split("\n").map((line) => line.trim()).filter(Boolean)
    : typeof one.value === "number" && /^\s*-?\d+(\.\d+)?\s*$/.test(field.value) ? Number(field.value) : field.value.trim());
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

  async function send(value) {
    field.removeAttribute("aria-invalid");
    wrong.textContent = "";
    try {
      const next = (await patch("/api/settings", { [one.name]: value })).settings.find((row) => row.name === one.name);
      redraw(next);
      notify(same(next.value, value) ? `${one.name} is ${text(value)} now.` : `Written to config.toml, but ${one.name} is still ${text(next.value)}, by $${next.origin}.`);
    } catch (error) {
      if (flag) field.checked = one.value;
      if (error.parameter && error.parameter !== one.name) throw error;
      field.setAttribute("aria-invalid", "true");
      // A fix that begins with the name only says again what it must be.
      wrong.textContent = [error.message, error.fix.startsWith(`${one.name}:`) ? "" : error.fix].filter(Boolean).join(" – ");
      field.focus();
    }
  }

  const sending = (value) => send(value).catch(notify);
  field.addEventListener("input", () => (save.disabled = same(given(), one.value)));
  if (flag) field.addEventListener("change", () => sending(field.checked));
  return h("form", { on: { submit: (event) => (event.preventDefault(), sending(given())) } },
    flag ? h("label.switch", {}, field, one.value ? "on" : "off") : field,
    h("div.acts", {}, !flag && save,
      !same(one.value, one.default) && h("button.small", { type: "button", "aria-label": `Set ${one.name} to its default`, on: { click: () => sending(one.default) } }, "Use the default")),
    many && h("p.meta", {}, "One on each line."), wrong);
}
