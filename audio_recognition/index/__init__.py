"""The index of fingerprints: the recordings that hold a given item, and the items themselves for comparison.

layout.py defines its format, segment.py writes a segment, fingerprint_index.py opens it. Fingerprinting, matching, and when an index is
built and published (the pipeline) do not belong here.
"""
