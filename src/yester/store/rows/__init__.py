"""The store's rows: what every engine writes and reads in the same words of SQL."""
