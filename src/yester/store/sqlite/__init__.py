"""The store on SQLite: one file, full text and vectors beside the items."""
