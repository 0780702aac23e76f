"""Lookups by key, built with the snapshot and opened read-only by any number of processes and threads (docs/design/serving.md).

schema.py specifies `serving.sqlite`. lookup_keys.py hashes keys and key_index.py stores them as arrays. body_encoding.py encodes tracks and
releases, fragments.py shortens their recurring pieces, body_file.py stores them and stored_body.py decodes them. serving_build.py writes
everything, store.py reads it. The meaning of a question (redirects, order, limits) belongs in catalog_store/queries.
"""
