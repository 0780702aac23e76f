"""The schema: every table of staging, linkage and catalog, by name.

One file per domain. `spec.py` defines how tables are described, `files.py` how they are stored on disk, `checks.py` the checks derived from
a spec.
"""

from __future__ import annotations

from catalog_store.platforms import INPUTS
from catalog_store.tables.fingerprints import FINGERPRINT_STAGING_TABLES, FINGERPRINT_TABLES, STAGED_OF_FINGERPRINTS
from catalog_store.tables.genres import GENRE_TABLES
from catalog_store.tables.linkage import LINKAGE_TABLES
from catalog_store.tables.links import LINK_TABLES
from catalog_store.tables.provenance import PROVENANCE_TABLES
from catalog_store.tables.quality import QUALITY_TABLES
from catalog_store.tables.recordings import RECORDING_TABLES
from catalog_store.tables.releases import RELEASE_TABLES
from catalog_store.tables.source_values import SOURCE_VALUE_TABLES
from catalog_store.tables.spec import Column, Table
from catalog_store.tables.staging import INTAKE, REJECT, STAGING_TABLES
from catalog_store.tables.track import TRACK
from catalog_store.tables.works import WORK_TABLES

CATALOG_TABLES = (
    *RECORDING_TABLES,
    TRACK,
    *RELEASE_TABLES,
    *PROVENANCE_TABLES,
    *SOURCE_VALUE_TABLES,
    *LINK_TABLES,
    *WORK_TABLES,
    *GENRE_TABLES,
    *FINGERPRINT_TABLES,
)
ALL_TABLES = (*STAGING_TABLES, *FINGERPRINT_STAGING_TABLES, *LINKAGE_TABLES, *CATALOG_TABLES, *QUALITY_TABLES)
TABLES = {table.name: table for table in ALL_TABLES}
STAGED_TABLES = {
    platform: (*STAGED_OF_FINGERPRINTS[platform], REJECT, INTAKE) if platform in STAGED_OF_FINGERPRINTS else STAGING_TABLES
    for platform in INPUTS
}
"""The staging tables of each platform's dump."""

__all__ = [
    "ALL_TABLES",
    "CATALOG_TABLES",
    "FINGERPRINT_STAGING_TABLES",
    "LINKAGE_TABLES",
    "QUALITY_TABLES",
    "STAGED_TABLES",
    "STAGING_TABLES",
    "TABLES",
    "Column",
    "Table",
]
