# Everything here runs on a machine that has only Python 3.11+ and make: each target first makes
# the virtual environment and installs what it needs, in the versions of requirements.lock.
#
#   make demo        what the package does, on real data, in a minute
#   make test        the tests, and the examples of README and docstrings (ten minutes)
#   make test-slow   the long proofs and the mutants (an hour)
#   make test-oldest  the tests with the oldest dependencies that pyproject.toml allows (needs the
#                    network)
#   make test-arviz  the posteriors for ArviZ, with ArviZ 0.x and 1.x (installs both)
#   make test-torch  networks in torch (installs torch in an environment of its own)
#   make gauntlet    random tables of many families against independent references (hours;
#                    GAUNTLET_ARGS="--fits 100 --seed 7": a share of it, with seeds of your own)
#   make lint        ruff and mypy
#   make docs        the documentation as HTML, in docs/_build/html, with all its links checked
#   make bench       the benchmarks, and the tables of README and docs again (40 minutes,
#                    without that of networks;
#                    BENCH_ARGS=--quick: a small share, nothing is written; or names of scripts)
#   make papers      the experiments of the five papers again, with the figures and tables of
#                    docs/papers (PAPERS_ARGS=--quick: a small share, nothing is written)
#   make lock        new pinned versions (needs the network)
#   make clean       remove all that was made here
#
# Another interpreter: make PYTHON=/path/to/python3 demo

SHELL := /bin/sh
PYTHON ?=
VENV ?= .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
DEMO_ARGS ?=
BENCH_ARGS ?=
PAPERS_ARGS ?=
GAUNTLET_ARGS ?= --fits 525
PYTEST_ARGS ?=
# File by file: what a file's tests compile and compute once is not done by two workers. In order of
# folders, so that the examples of all docstrings come last, when all kernels have been compiled.
IN_PARALLEL := -n auto --dist loadfile --no-loadscope-reorder

.PHONY: help demo test test-slow test-oldest test-arviz test-torch gauntlet lint docs bench papers lock
.PHONY: clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.with-plot
	$(BIN)/python -m skbayes_sg $(DEMO_ARGS)

test: $(VENV)/.with-test
	$(BIN)/python -m pytest -m "not slow" $(IN_PARALLEL) $(PYTEST_ARGS)

test-slow: $(VENV)/.with-test
	$(BIN)/python -m pytest -m slow --timeout 1800 $(IN_PARALLEL) $(PYTEST_ARGS)

# All packages as old as pyproject.toml allows; what they need in turn is as new as they allow.
test-oldest: $(VENV)/.with-lock
	$(BIN)/python -m venv --clear $(VENV)/oldest
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --python-version 3.11 --no-annotate \
	  --no-header --extra plot --extra progress --extra dask --group test --group build \
	  pyproject.toml --output-file $(VENV)/oldest.txt
	@oldest=$(VENV)/oldest$(BIN:$(VENV)%=%)/python; \
	$$oldest -m pip install --quiet --disable-pip-version-check -r $(VENV)/oldest.txt \
	  && $$oldest -m pip install --quiet --no-deps $(PACKAGE) . \
	  && $$oldest -m pytest -m "not slow" $(IN_PARALLEL) $(PYTEST_ARGS)

# ArviZ 1.x says that it needs Python 3.12; what the tests use of it runs on 3.11 as well.
test-arviz: $(VENV)/.with-test
	@for wanted in "arviz<1" "arviz>=1"; do \
	  echo "With $$wanted:"; \
	  $(BIN)/python -m venv --clear $(VENV)/of-arviz; \
	  other=$(VENV)/of-arviz$(BIN:$(VENV)%=%)/python; \
	  $(BIN)/python -c "$(packages)" > "$$($$other -c "$(packages)")/beside.pth"; \
	  $$other -m pip install --quiet --disable-pip-version-check --ignore-requires-python "$$wanted" \
	    && $$other -m pytest tests/posterior/test_arviz.py || exit 1; \
	done

# torch is pinned by a lock file of its own, and no other target installs it.
test-torch: $(VENV)/.with-torch
	$(TORCH_BIN)/python -m pytest tests/of_torch $(PYTEST_ARGS)

gauntlet: $(VENV)/.with-test
	$(BIN)/python examples/benchmarks/gauntlet.py $(GAUNTLET_ARGS)

lint: $(VENV)/.with-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.with-docs
	$(BIN)/python -m sphinx -W -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

bench: $(VENV)/.with-plot
	$(BIN)/python examples/benchmarks/_all.py $(BENCH_ARGS)

lock: $(VENV)/.with-lock
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-annotate \
	  --extra plot --extra progress --extra arviz --extra dask \
	  --group build --group test --group lint --group docs --group lock \
	  --custom-compile-command "make lock" pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV) dist build docs/_build docs/api/generated docs/auto_examples skbayes_sg_demo.png
	rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# -- set-up -------------------------------------------------------------------------------------

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock
PACKAGE := --no-build-isolation -e

# One stamp file for each set of packages, so that repeating a target costs nothing.
$(VENV)/.with-plot: $(VENV)/.ready
	@echo "Installing skbayes_sg and matplotlib into $(VENV) ..."
	@$(INSTALL) $(PACKAGE) ".[plot]"
	@touch $@

$(VENV)/.with-test: $(VENV)/.ready
	@echo "Installing skbayes_sg and the test tools into $(VENV) ..."
	@$(INSTALL) --group test $(PACKAGE) ".[plot,progress,dask]"
	@touch $@

$(VENV)/.with-lint $(VENV)/.with-docs: $(VENV)/.with-%: $(VENV)/.ready
	@echo "Installing skbayes_sg and the tools for $* into $(VENV) ..."
	@$(INSTALL) --group $* $(PACKAGE) ".[plot,dask]"
	@touch $@

$(VENV)/.with-lock: $(VENV)/.ready
	@$(INSTALL) --group lock
	@touch $@

# What the tests need lies in $(VENV), beside which torch has an environment of its own.
TORCH := $(VENV)/of-torch
TORCH_BIN := $(TORCH)$(BIN:$(VENV)%=%)
$(VENV)/.with-torch: $(VENV)/.with-test requirements-torch.lock
	@echo "Installing torch into $(TORCH) ..."
	@$(BIN)/python -m venv --clear $(TORCH)
	@$(BIN)/python -c "$(packages)" > "$$($(TORCH_BIN)/python -c "$(packages)")/beside.pth"
	@$(TORCH_BIN)/python -m pip install --quiet --disable-pip-version-check \
	  -c requirements.lock -c requirements-torch.lock torch
	@touch $@

# pip itself (for --group) and the build backend come from the lock file as well.
$(VENV)/.ready: pyproject.toml requirements.lock
	@$(find_python); \
	$(BIN)/python -c "import pip; $(recent)" 2>/dev/null \
	  || { echo "Creating $(VENV) with $$python ..."; "$$python" -m venv --clear $(VENV); }
	@$(INSTALL) --upgrade pip hatchling editables
	@touch $@

# The folder of an interpreter's installed packages.
packages := import sysconfig; print(sysconfig.get_paths()['purelib'])

# Sets $python to the first interpreter that is recent enough and can make virtual environments.
recent := import sys; sys.exit(sys.version_info < (3, 11))
define find_python
python=; without_venv=; seen=; \
for candidate in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python); do \
  seen="$$seen$$("$$candidate" -c 'import platform; print(" " + platform.python_version())' 2>/dev/null)"; \
  "$$candidate" -c "$(recent)" 2>/dev/null || continue; \
  if "$$candidate" -c "import venv, ensurepip" 2>/dev/null; then python=$$candidate; break; fi; \
  without_venv=$${without_venv:-$$candidate}; \
done; \
if [ -z "$$python" ] && [ -n "$$without_venv" ]; then \
  echo "$$without_venv cannot create virtual environments: a part of Python that some systems ship"; \
  echo "separately is missing. On Debian and Ubuntu install it with"; \
  echo; \
  echo "    sudo apt install $${without_venv##*/}-venv"; \
  echo; \
  echo "and run make again."; \
  exit 1; \
elif [ -z "$$python" ]; then \
  echo "skbayes_sg needs Python 3.11 or newer; found$${seen:- none}."; \
  echo "Install one (https://www.python.org/downloads/, or: sudo apt install python3 python3-venv)"; \
  echo "and run make again, or name it: make PYTHON=/path/to/python3"; \
  exit 1; \
fi
endef
