"""What an agent is told: at the start of a session, at a prompt, before a file is read, and at the
moment of action."""
