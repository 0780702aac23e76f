"""Source records -> atoms -> edges -> clusters -> stable recording ids; pure functions over frames.

`link` is the entry for a frame in memory; `stages` runs the same functions over the tables of a build, bucket by bucket.
docs/design/linkage.md tells the stages and the reason of every guard.
"""

from __future__ import annotations

from pipeline.linkage.linking import link

__all__ = ["link"]
