"""The process that follows sessions: answers hooks, takes events in, works in the background."""
