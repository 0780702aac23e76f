"""The revisions, one file each, in order of their numbers. Out of scope: the tables as code knows them (schema.py)."""
