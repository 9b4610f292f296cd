// yester in opencode: asks the worker what to tell, and rings when there is something to read.
// What happened is read from opencode's own database; nothing is stored from here.
import { spawn } from "node:child_process"
import { readFileSync, realpathSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const plugin = join(dirname(realpathSync(fileURLToPath(import.meta.url))), "..", "..")
const hook = join(plugin, "hooks", "hook.py")

// What the hook prints; "" when anything is wrong: the session must never notice.
function tell(event, cwd, payload) {
  return new Promise((resolve) => {
    let said = ""
    const child = spawn("python3", ["-I", "-S", hook, event, "opencode"], {
      cwd, stdio: ["pipe", "pipe", "ignore"],
    })
    const timer = setTimeout(() => child.kill(), 3000)
    const end = () => { clearTimeout(timer); resolve(said) }
    child.on("error", end)
    child.on("close", end)
    child.stdin.on("error", () => {})
    child.stdout.on("data", (part) => { said += part })
    child.stdin.end(JSON.stringify({ ...payload, cwd }))
  })
}

function server() {
  const { command, args, env } = JSON.parse(readFileSync(join(plugin, ".mcp.json"))).mcpServers.yester
  return { type: "local", command: [command, ...args], environment: env, enabled: true }
}

export const Yester = async ({ directory }) => {
  const begun = new Set() // sessions that began in this process
  const children = new Set() // those of sub-agents
  const starts = new Map() // session → what it was told at its start

  return {
    config: async (config) => {
      config.mcp = config.mcp ?? {}
      config.mcp.yester = config.mcp.yester ?? server()
    },

    event: async ({ event }) => {
      const about = event.properties ?? {}
      if (event.type === "session.created") {
        begun.add(about.info?.id)
        if (about.info?.parentID) children.add(about.info.id)
      }
      const ours = { "session.idle": "Stop", "session.compacted": "PostCompact" }[event.type]
      if (ours && !children.has(about.sessionID))
        await tell(ours, directory, { session_id: about.sessionID })
    },

    "chat.message": async ({ sessionID }, output) => {
      if (children.has(sessionID)) return
      if (!starts.has(sessionID)) {
        const source = begun.has(sessionID) ? "startup" : "resume"
        starts.set(sessionID, await tell("SessionStart", directory, { session_id: sessionID, source }))
      }
      const typed = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = typed.map((part) => part.text).join("\n")
      const text = prompt && (await tell("UserPromptSubmit", directory, { session_id: sessionID, prompt }))
      if (text)
        output.parts.push({
          id: `prt_${output.message.id.replace(/^msg_/, "")}yester`, sessionID,
          messageID: output.message.id, type: "text", text, synthetic: true,
        })
    },

    "experimental.chat.system.transform": async (input, output) => {
      const text = starts.get(input.sessionID)
      // It is asked for titles as well, in the session's name.
      const titles = output.system.some((part) => part.startsWith("You are a title generator"))
      if (text && !titles) output.system.push(text)
    },

    "tool.execute.after": async ({ sessionID, tool }) => {
      void tell("PostToolUse", directory, { session_id: sessionID, tool_name: tool })
    },
  }
}
