"""Memories of other programs, into the store: a row in tables/importers.toml and a reader each."""
