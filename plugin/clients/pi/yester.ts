// yester in pi: asks the worker what to tell, and rings when there is something to read.
// What happened is read from pi's session file; nothing is stored from here.
import { spawn } from "node:child_process"
import { realpathSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const here = typeof __filename === "string" ? __filename : fileURLToPath(import.meta.url)
const hook = join(dirname(realpathSync(here)), "..", "..", "hooks", "hook.py")

let last = { cwd: process.cwd(), session_id: "", transcript_path: "" }

// Where the session is. A session that was replaced meanwhile does not say so any more.
function place(ctx: any) {
  try {
    const { cwd, sessionManager } = ctx
    const transcript_path = sessionManager.getSessionFile() ?? ""
    last = { cwd, session_id: sessionManager.getSessionId(), transcript_path }
  } catch {}
  return last
}

// What the hook prints; "" when anything is wrong: the session must never notice.
function tell(event: string, ctx: any, payload: object): Promise<string> {
  return new Promise((resolve) => {
    let said = ""
    const here = place(ctx)
    const child = spawn("python3", ["-I", "-S", hook, event, "pi"], {
      cwd: here.cwd, stdio: ["pipe", "pipe", "ignore"],
    })
    const timer = setTimeout(() => child.kill(), 3000)
    const end = () => { clearTimeout(timer); resolve(said) }
    child.on("error", end)
    child.on("close", end)
    child.stdin.on("error", () => {})
    child.stdout.on("data", (part: Buffer) => { said += part })
    child.stdin.end(JSON.stringify({ ...payload, ...here }))
  })
}

export default function (pi: any) {
  let start = ""
  pi.on("session_start", async (event: any, ctx: any) => {
    const source = event.reason === "resume" || event.reason === "reload" ? "resume" : "startup"
    start = await tell("SessionStart", ctx, { source })
  })
  pi.on("before_agent_start", async (event: any, ctx: any) => {
    const found = await tell("UserPromptSubmit", ctx, { prompt: event.prompt })
    const content = [start, found].filter(Boolean).join("\n\n")
    start = ""
    return content ? { message: { customType: "yester", content, display: false } } : undefined
  })
  pi.on("tool_result", async (event: any, ctx: any) => {
    void tell("PostToolUse", ctx, { tool_name: event.toolName })
  })
  pi.on("agent_end", async (_: any, ctx: any) => { await tell("Stop", ctx, {}) })
  pi.on("session_compact", async (_: any, ctx: any) => { await tell("PostCompact", ctx, {}) })
  pi.on("session_shutdown", async (_: any, ctx: any) => { await tell("SessionEnd", ctx, {}) })
}
