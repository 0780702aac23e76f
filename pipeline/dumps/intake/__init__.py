"""From landed dumps to staging tables: which dump is read, by which adapter, and what happens when it cannot be read."""
