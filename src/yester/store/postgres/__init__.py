"""The store on PostgreSQL: for many users, on any server of version 16 or newer."""
