"""What the catalog is: tables, identifiers, name keys, snapshots and the queries over a published one."""
