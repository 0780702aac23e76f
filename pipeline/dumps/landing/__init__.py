"""Dumps from upstream to the landing zone: complete, verified, never changed afterwards."""
