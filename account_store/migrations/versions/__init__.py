"""The revisions, one file each, in order of their numbers. What must not live here: the tables as code knows them (schema.py)."""
