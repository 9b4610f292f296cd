"""What hooks do: write an event down and leave. Standard library only, and never in the way."""
