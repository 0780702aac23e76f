"""Delivered dumps -> staging tables: one adapter module (or package) per platform, all writing through `StagingWriter`."""
