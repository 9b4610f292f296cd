"""What agents wrote and hooks told, into the store."""
