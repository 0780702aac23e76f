"""Builds of the catalog: dumps -> staging -> linkage -> catalog tables -> snapshot.

Its packages import downwards only: defs > quality > build > linkage > dumps > engine.

The import of this package sets the allocator of Polars before Polars is loaded, which the environment overrides, and the garbage collector.
"""

import gc
import os

# The allocator keeps freed pages for two seconds. A night soon asks again for memory that it freed, and page faults were a quarter of its
# processor time.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:2000")

# By default the collector looked ten times through the 350,000 objects of Dagster and the rules, which live as long as the process: 1.8 CPU
# seconds of a build of any size. A build makes few cycles.
gc.set_threshold(50_000, 20, 100)
