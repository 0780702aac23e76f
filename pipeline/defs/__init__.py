"""All Dagster code: assets, checks, jobs, schedules, resources."""
