"""The linkage stages over the tables of a build: each reads what the one before wrote and writes its own tables.

normalise_and_atoms -> edges -> clusters -> recording_ids. Everything heavy runs bucket by bucket, and buckets are ranges of a hash of our
own, so that any number of them gives the same tables. What is held whole are names, numbers (edges, clusters) and the id registry.
When the night builds on a snapshot (see night.py), each stage takes over what no change has reached and works out the rest.
"""

from __future__ import annotations

from pipeline.linkage.stages.atoms import normalise_and_atoms
from pipeline.linkage.stages.clusters import clusters
from pipeline.linkage.stages.edges import edges
from pipeline.linkage.stages.recordings import recording_ids

__all__ = ["clusters", "edges", "normalise_and_atoms", "recording_ids"]
