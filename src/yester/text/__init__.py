"""Words: terms, queries, sentences, an item as text, embeddings."""
