"""Linkage of a night that builds on the live snapshot: only what changed is linked again.

Each module `<x>_changes` gives the rows of its full-path counterpart in `pipeline.linkage` at the cost of the changes. The full path never
imports this package; `pipeline.linkage.stages` chooses between both.
"""
