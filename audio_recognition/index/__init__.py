"""The index of fingerprints: which recordings hold a given item, and the items themselves to compare with.

Here live its format (layout.py), how a segment of it is written (segment.py), how it is opened (index.py). What must not live here:
fingerprinting, what makes a match (matching), when an index is built and where it is published (the pipeline).
"""
