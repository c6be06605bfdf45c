# make test        everything that fits into 20 minutes on 2 cores
# make test-fast   what needs no JVM, under a minute
# make test-full   the counts of docs/reliability.md as well
# make fuzz        coverage-guided inputs of every decoder, RUNS each (Linux; installs atheris)
# make reliability what docs/reliability.md counts, on demand: hours on 2 cores
# make notebooks   notebooks/*.ipynb from notebooks/*.py
# make docs        the pages of docs as a site in build/site
# make lint        format, style, types, layers
SHELL := bash
PYTHON := .venv/bin/python
export PYTHONPATH := $(CURDIR)
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: setup test test-fast test-full fuzz reliability lint format notebooks docs

setup:
	@for python in "$${PYTHON_FOR_SETUP:-python3}" python3.13 python3.12 python3.11; do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	  exec "$$python" -m jobs.set_up --dev; done; echo "Python 3.11 or newer is needed" >&2; exit 2

test: setup
	$(PYTHON) -m pytest -rs -m "not full"

test-fast: setup
	$(PYTHON) -m pytest -m "not spark and not slow and not full"

test-full: setup
	AUDIT_FULL=1 $(PYTHON) -m pytest -rs

fuzz: setup
	$(PYTHON) -m pip install --quiet atheris==3.0.0
	$(PYTHON) -m tests.fuzz.guided $(RUNS)

reliability: setup
	AUDIT_FUZZ_COUNT=10000000 $(PYTHON) -m tests.fuzz.mutate
	$(PYTHON) -m pytest -s tests/fuzz tests/reliability
	AUDIT_CUTS=1000 $(PYTHON) -m pytest tests/unit/detect/test_cut_copies.py
	folder="$$(mktemp -d)"; trap 'rm -rf "$$folder"' EXIT; \
	  $(PYTHON) -m tests.reliability.kills "$$folder" && $(PYTHON) -m tests.reliability.memory "$$folder" 10 100 large

lint: setup
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	.venv/bin/lint-imports

format: setup
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

notebooks: setup
	.venv/bin/jupytext --to ipynb --update-metadata \
	  '{"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}' notebooks/*.py

docs: setup
	.venv/bin/mkdocs build --strict --quiet
