"""What coding agents have written down, as items: a row in tables/agents.toml and a module each."""
