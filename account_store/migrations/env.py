"""Runs the revisions on the connection that `database.migrate` opened: within its transaction, under its lock."""

from __future__ import annotations

from alembic import context

from account_store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
