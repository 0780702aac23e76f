"""Builds the catalog: dumps -> staging -> linkage -> catalog tables -> snapshot. Inside: defs > build > linkage > dumps."""
