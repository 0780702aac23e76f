"""Delivered dumps -> staging tables, one adapter per platform.

landing/            fetches dumps: what upstream shows, transfer, checksums, the landing zone
intake/             chooses the dump to read, runs its adapter, guards the run
platforms/          one adapter per platform key
delivered_records/  one shape on disk for platforms that deliver several layouts
readers/            file formats -> frames, every record counted
staging/            the writer of staging tables, and what a staged row must keep
fields/             values that all platforms deliver: dates, durations, ISRCs, texts, credits

An adapter hands every record to `StagingWriter`, staged or rejected.
"""
