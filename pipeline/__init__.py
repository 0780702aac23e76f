"""Builds of the catalog: dumps -> staging -> linkage -> catalog tables -> snapshot.

Its packages import downwards only: defs > quality > build > linkage > dumps > engine.

The import of this package sets the allocator of Polars before Polars is loaded. The environment overrides this setting.
"""

import os

# The allocator keeps freed pages for two seconds. A night soon asks again for memory that it freed, and page faults were a quarter of its
# processor time.
os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:2000")
