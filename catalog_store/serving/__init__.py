"""Lookups by key, built with the snapshot, opened read-only by any number of processes and threads (docs/design/serving.md).

schema.py specifies `serving.sqlite`, keys.py hashes keys, key_index.py holds them as arrays, bodies.py encodes tracks and releases,
fragments.py takes their recurring pieces out, body_file.py holds them, build.py writes it all, store.py reads it, stored.py decodes. What a
question means (redirects, order, limits) belongs to catalog_store/queries.
"""
