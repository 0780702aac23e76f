"""Judgement of a finished build: invariants over its tables, figures, the publish gate and the report.

Nothing that builds a table imports this package. Checks of a single table are part of its spec (catalog_store/tables).
"""
