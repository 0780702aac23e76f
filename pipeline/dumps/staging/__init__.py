"""Staging tables: their writer, reject reasons, checks of records, and comparison with the dump before."""
