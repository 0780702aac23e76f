"""Lookups by key: `serving.sqlite`, built with the snapshot, opened read-only by any number of processes and threads.

schema.py specifies the file, keys.py packs the keys, bodies.py encodes tracks, build.py writes it, store.py reads it. What a question
means (redirects, order, limits) belongs to catalog_store/queries.
"""
