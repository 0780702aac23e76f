"""Bulk jobs of accounts: their rows, credits and leases.

Out of scope: what a job does, and its files (catalog_api/jobs).
"""
