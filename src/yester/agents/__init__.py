"""What coding agents have written down, as items: one module an agent, described in descriptors."""
