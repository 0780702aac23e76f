# Every recipe is one line; `make help` lists them. PYTHON may name the interpreter (>= 3.11); scripts/setup chooses one otherwise.
PYTHON ?=
FUZZ_SECONDS ?= 600
.DEFAULT_GOAL := help
URL ?= http://127.0.0.1:8000
KEY ?=
.PHONY: help setup run contract test test-slow test-long test-spark check fuzz bench dev explore docs lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 11
setup: ## install everything into .venv (only what changed)
	@PYTHON=$(PYTHON) scripts/setup
run: setup ## build the demo catalog, serve it on 127.0.0.1:8000 (PORT=n), print requests to try
	@scripts/demo
contract: setup ## show each row of the contract against a running server, by default the demo (URL=..., KEY=...)
	@.venv/bin/python -m scripts.contract_check --url "$(URL)" --key "$(KEY)"
test: setup ## run the tests that every change needs
	@scripts/system_packages && POLARS_MAX_THREADS=1 PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -q
test-slow: setup ## run the tests that take many CPU seconds each: whole builds, forced linkage, kills, browser (.ci/run does)
	@scripts/system_packages && scripts/analyst_tools && PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -q -m "slow and not long"
test-long: setup ## run the tests that take hours: kill loops, soak, power loss
	@scripts/system_packages && .venv/bin/python -m pytest -m long -q
test-spark: setup ## build on a real Spark, a master and two workers on this machine, and kill a worker meanwhile
	@scripts/spark_tools && .venv/bin/python -m pytest -m long -q tests/rebuild/test_spark_cluster.py
check: setup ## lint, types, import rules, dead code, known vulnerabilities of dependencies
	@.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports && .venv/bin/python -m scripts.tree_statistics --dead-code && .venv/bin/python -m scripts.dependency_audit
fuzz: ## fuzz the readers of dumps, cursors, fingerprints and requests, ten minutes a target (FUZZ_SECONDS=n); findings go to fuzz-findings/
	@scripts/fuzz --seconds $(FUZZ_SECONDS)
bench: setup ## print the benchmark tables (takes hours; each section can be run alone)
	@scripts/benchmarks
dev: setup ## start Dagster's web interface on http://127.0.0.1:3000 (PORT=n)
	@scripts/dev
explore: ## browse the live snapshot in the terminal, with SQL (CATALOG_ROOT names the catalog; default: the demo)
	@scripts/explore
docs: setup ## regenerate the generated pages, build the site into docs/_build
	@.venv/bin/python -m scripts.generate_docs && scripts/site
lock: setup ## compile the lock files from pyproject.toml
	@scripts/lock
clean: ## delete the environment and the demo
	@rm -rf .venv .venv-beets .venv-bench .venv-mutation .venv-fuzz .venv-docs .venv-explore .venv-lake .venv-oldest-duckdb .venv-spark docs/_build demo
