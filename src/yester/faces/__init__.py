"""How the memory is used from outside: command line, HTTP, MCP, Python."""
