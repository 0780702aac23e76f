"""Source records -> atoms -> edges -> clusters -> stable recording ids; pure functions over frames.

`link` works on frames in memory; `stages` runs the same functions over the tables of a build, bucket by bucket. Only nights that build on a
snapshot need `incremental`. docs/design/linkage.md explains the stages and the reason of every guard.
"""

from __future__ import annotations

from pipeline.linkage.in_memory_linkage import link

__all__ = ["link"]
