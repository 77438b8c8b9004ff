# GNU make 3.81 or later and a POSIX shell (Linux, macOS)

PYTHON ?=
DISK_GB ?= 10
JOBS ?= 2
VENV ?= .venv
VERSIONS ?= $(if $(LATEST),latest)$(if $(LOCKED),locked)
TORCH_INDEX ?=
export PYTHON DISK_GB VENV VERSIONS TORCH_INDEX
# else each process of the tests compiles all files again
unexport PYTHONDONTWRITEBYTECODE

VENV_PYTHON = $(VENV)/bin/python
# The models of the tests are small, so processes help and threads do not. The
# tests of a file share fixtures.
PYTEST = OMP_NUM_THREADS=1 $(VENV_PYTHON) -m pytest -rs --durations=10 \
	--randomly-dont-reset-seed
PARALLEL = -n $(JOBS) --dist loadfile
QUICK = not slow and not gpu and not alone and not hostile
# collecting all other files takes 20 s
FIRST = $(shell grep -rl --include='test_*.py' pytest.mark.first tests)

.PHONY: help install demo test test-first test-slow test-hostile test-all \
	test-oldest test-torch28 test-latest lint docs pictures sbom dist clean

help:
	@echo 'make demo         train, test and draw a small model on synthetic leaves'
	@echo 'make test         lint and the quick tests'
	@echo 'make test-first   the slow tests of the first commands that users run'
	@echo 'make test-slow    all slow tests'
	@echo 'make test-hostile kills, full disks and damaged files, in many tries'
	@echo 'make test-all     all tests but hostile ones and those for a GPU'
	@echo 'make test-oldest  the same with the oldest versions, in .venv-oldest'
	@echo 'make test-torch28 the same with PyTorch 2.8, in .venv-torch28'
	@echo 'make test-latest  the same with the newest versions, in .venv-latest'
	@echo 'make lint         ruff, codespell and a search for duplicated code'
	@echo 'make docs         the documentation site, in docs/_build/html'
	@echo 'make pictures     draw the pictures of the docs again'
	@echo 'make sbom         list of all tested packages, in mmclca.cdx.json (needs pipx)'
	@echo 'make dist         build and check the files for PyPI, in dist/ (6 GB, removed)'
	@echo 'make install      the environment .venv, which all of the above create first'
	@echo 'make clean        remove .venv, build output and caches'
	@echo 'Variables of make install:'
	@echo '  LATEST=1          newest versions (default: requirements/tested.txt)'
	@echo '  LOCKED=1          the tested versions, checked by hashes'
	@echo '  PYTHON=PATH       interpreter (default: the first suitable one)'
	@echo '  TORCH_INDEX=URL   additional index, such as that of CPU-only PyTorch'
	@echo 'Variables of the tests:'
	@echo '  JOBS=4            number of processes (default: 2)'
	@echo '  MMCLCA_SEED=1     first seed of test-hostile (default: 0)'

install:
	@sh tools/dev/install.sh

demo: install
	$(VENV_PYTHON) tools/demo.py

test: lint
	$(PYTEST) $(PARALLEL) -m '$(QUICK)'

test-first: install
	$(PYTEST) $(PARALLEL) -m 'first and not gpu' $(FIRST)

test-slow: install
	$(PYTEST) $(PARALLEL) -m 'slow and not gpu'

test-hostile: install
	$(PYTEST) $(PARALLEL) -m 'hostile and not gpu'

test-all: install
	$(PYTEST) $(PARALLEL) -m 'not alone and not gpu and not hostile'
	$(PYTEST) -m alone tests/test_benchmark

test-oldest:
	$(MAKE) test-all VENV=.venv-oldest VERSIONS=oldest

test-torch28:
	$(MAKE) test-all VENV=.venv-torch28 VERSIONS=torch28

test-latest:
	$(MAKE) test-all VENV=.venv-latest VERSIONS=latest

docs: install
	$(VENV_PYTHON) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

pictures: install
	$(VENV_PYTHON) tools/dev/pictures

sbom:
	pipx run --spec cyclonedx-bom==7.5.0 cyclonedx-py requirements \
		requirements/locked.txt --pyproject pyproject.toml \
		--mc-type library --output-reproducible -o mmclca.cdx.json

dist:
	@sh tools/dev/dist.sh

lint: install
	@PYTHON=$(VENV_PYTHON) sh tools/dev/lint.sh

clean:
	@sh tools/dev/clean.sh
