"""Bulk jobs: their files, and the worker process that resolves their rows (`python -m catalog_api.jobs`).

`job_folder` names the files, `job_input` reads uploads, `job_result` writes results, `reference_input` fetches what an address names,
`job_worker` does a job chunk by chunk. Rows of jobs and their leases are in account_store/jobs, routes in catalog_api/routes/jobs.py.
"""
