"""Numbers and hashes that stand for source records: what staging lays down beside its tables and linkage compares instead of names.

`numbers` makes them, `content_hash` tells whether a record changed, `place_numbers` and `new_records` are the files beside the staging
tables. The pipeline and the simulator both write these. What must not live here: how records are linked (pipeline/linkage).
"""
