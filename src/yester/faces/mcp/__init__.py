"""The MCP server: tools for a model, JSON-RPC on stdin and stdout."""
