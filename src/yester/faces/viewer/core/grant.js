// What lets a tab come back after the server was started again: a grant, NAME.SECRET, kept by this
// tab alone. The name goes first; the secret only to a server that has shown that it knows the grant,
// so that another program on the same port learns nothing.

const PLACE = "yester.grant";
const utf8 = new TextEncoder();
const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");

export const readGrant = () => sessionStorage.getItem(PLACE) || "";
export const keepGrant = (grant) => sessionStorage.setItem(PLACE, grant);
export const dropGrant = () => sessionStorage.removeItem(PLACE);
export const grantName = (grant = readGrant()) => grant.split(".")[0];

/** `prove({grant, nonce})` asks the server. True where it answers what only who knows this grant can. */
export async function isProved(grant, prove) {
  const nonce = hex(crypto.getRandomValues(new Uint8Array(32)));
  const { proof } = await prove({ grant: grantName(grant), nonce });
  const secret = await crypto.subtle.digest("SHA-256", utf8.encode(grant.slice(grant.indexOf(".") + 1)));
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  // The address is what this tab sees, so that no other server's answer can be passed on here.
  return hex(await crypto.subtle.sign("HMAC", key, utf8.encode(`${location.host}\n${nonce}`))) === proof;
}

const BROWSERS = [["Edge", /Edg\//], ["Firefox", /Firefox\//], ["Chromium", /Chrom(e|ium)\//], ["Safari", /Safari\//]];
const SYSTEMS = [["Android", /Android/], ["iOS", /iPhone|iPad/], ["macOS", /Mac OS/], ["Windows", /Windows/], ["Linux", /Linux/]];

/** This browser, for the list in Settings. */
export function nameBrowser(agent = navigator.userAgent) {
  const first = (rows) => rows.find(([, fits]) => fits.test(agent))?.[0];
  return [first(BROWSERS) ?? "A browser", first(SYSTEMS)].filter(Boolean).join(" on ");
}
