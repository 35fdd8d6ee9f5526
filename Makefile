# The two commands of the README are `make report` and `make test`; everything else is for people who work on userturn.
SHELL := bash
CORES ?= all
BIN := .envs/workflow/bin
DEV := .envs/dev/bin
# Some machines tell Python not to keep compiled modules: each start of Snakemake or vLLM would then take three times as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: report test test-slow check-report lint setup setup-dev schema

report: setup ## set up, then run the main job on the embedded default study
	$(BIN)/snakemake --cores $(CORES) results/report.html

# The weights that many tests use are prepared by the workflow itself.
WEIGHTS := data/models/smollm2-135m-instruct/model.json data/judges/provisional/model.json

test: setup setup-dev ## set up, then run the tests
	$(BIN)/snakemake --cores $(CORES) --quiet all -- $(WEIGHTS)
	$(DEV)/python -m pytest

test-slow: setup setup-dev ## kills at random moments and trainings that are killed: minutes
	$(DEV)/python -m pytest -m slow

check-report: setup-dev ## check what `make report` wrote
	$(DEV)/python -m pytest -m main_job tests/main_job

lint: setup setup-dev ## ruff, mypy (strict), snakefmt, snakemake --lint
	$(DEV)/ruff check src tests benchmarks gold
	$(DEV)/ruff format --check src tests benchmarks gold
	$(DEV)/mypy
	$(DEV)/snakefmt --check Snakefile rules
	$(DEV)/snakemake --lint

setup:
	@envs/setup.sh workflow engine

setup-dev:
	@envs/setup.sh dev peers

schema: setup ## write config/config.yaml and config/config.schema.json anew from the typed model
	$(BIN)/userturn config write
