"""The only mutable state: accounts and API keys, in SQLite or PostgreSQL."""
