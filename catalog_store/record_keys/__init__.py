"""Numbers and hashes of source records, which staging writes beside its tables and linkage compares instead of names.

`numbers` computes them, `content_hash` detects changed records, `place_numbers` and `new_records` are the files beside the staging tables.
The pipeline and the simulator both write them. How records are linked belongs in pipeline/linkage.
"""
