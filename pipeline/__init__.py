"""Builds the catalog: dumps -> staging -> linkage -> catalog tables -> snapshot. Inside: defs > build > linkage > dumps.

The first import of anything here tells the allocator of Polars, before it is loaded, to keep freed pages two seconds: a night asks again
for the memory that it gave back a moment ago, and page faults were a quarter of its processor time. What the environment says goes first.
"""

import os

os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:2000")
