"""Alembic revisions of the account store's tables, shipped with the package; `database.migrate` runs them."""
