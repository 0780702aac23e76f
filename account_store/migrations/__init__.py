"""Alembic revisions of the account store's tables, shipped with the package; `database.migrate` runs them.

A change of schema.py needs a revision: copy the newest file of `versions`, raise `revision` and `down_revision`, and set `database.NEWEST`.
Revisions that were released are never changed. Tests compare what they make with schema.py, on both databases.
"""
