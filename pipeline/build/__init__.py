"""Linked source records -> catalog tables."""
