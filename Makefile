.DEFAULT_GOAL := help
.PHONY: help setup check test test-full up down demo bench

help: ## list these verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## bring packages and jars (needs Python 3.11 or 3.12, Java 17 or newer)
	@sh scripts/setup.sh

check: setup ## ruff, mypy and import-linter
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

test: setup ## the tests of every day, a few minutes
	.venv/bin/python -m pytest -q -m "not full"

test-full: setup ## all tests, with every crash point and long runs
	.venv/bin/python -m pytest -q

up: setup ## Airflow on this machine; prints its address and where the passwords are
	.venv/bin/tidemark up

down: ## ends Airflow; streams go on
	.venv/bin/tidemark down

demo: setup ## a minute of live clicks with planted faults, and what the stream made of them
	.venv/bin/python scripts/demo.py

bench: setup ## the same windows on this project, Spark, Flink and DuckDB
	.venv/bin/python -m benchmarks.run
	.venv/bin/python -m benchmarks.run --paced
