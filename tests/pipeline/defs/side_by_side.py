"""The jobs of the catalog at CATALOG_ROOT with a process for each step, for the tests that start them."""

import dagster as dg

from pipeline.definitions import build_definitions
from pipeline.defs.resources import NIGHTLY, RECLASSIFY, CatalogResource
from pipeline.settings import Settings

defs = build_definitions({"catalog": CatalogResource.of(Settings.from_environment())}, executor=dg.multiprocess_executor)


def nightly() -> dg.JobDefinition:
    return defs.resolve_job_def(NIGHTLY)


def reclassify() -> dg.JobDefinition:
    return defs.resolve_job_def(RECLASSIFY)
