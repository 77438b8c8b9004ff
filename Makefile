# GNU make 3.81 or later and a POSIX shell (Linux, macOS)

PYTHON ?=
DISK_GB ?= 10
JOBS ?= 2
VENV ?= .venv
VERSIONS ?= $(if $(LATEST),latest)
export PYTHON DISK_GB VENV VERSIONS

VENV_PYTHON = $(VENV)/bin/python
# models of the tests are small: a second thread only waits, a second process
# does not; the tests of a file share what was made for them
PYTEST = OMP_NUM_THREADS=1 $(VENV_PYTHON) -m pytest -rs --durations=10 \
	--randomly-dont-reset-seed
PARALLEL = -n $(JOBS) --dist loadfile
QUICK = not slow and not gpu and not alone

.PHONY: help install demo test test-first test-slow test-all test-oldest \
	test-latest lint docs pictures clean

help:
	@echo 'make demo         train, test and draw a small model on drawn leaves'
	@echo 'make test         lint and the quick tests'
	@echo 'make test-first   the slow tests of what users do first'
	@echo 'make test-slow    all slow tests; run before a change is called done'
	@echo 'make test-all     every test there is'
	@echo 'make test-oldest  the same with the oldest versions, in .venv-oldest'
	@echo 'make test-latest  the same with the newest versions, in .venv-latest'
	@echo 'make lint         ruff, codespell and a search for duplicated code'
	@echo 'make docs         the documentation as a site, in docs/_build/html'
	@echo 'make pictures     draw the pictures of the docs again'
	@echo 'make install      what all of the above do first: fills .venv'
	@echo 'make clean        remove .venv, build output and caches'
	@echo 'make install takes the versions of requirements/tested.txt, make'
	@echo 'install LATEST=1 the newest; VERSIONS=tested goes back.'
	@echo 'JOBS=4 runs tests in four processes, where there are cores (default 2).'
	@echo 'PYTHON=/path/to/python3 names the interpreter that .venv is made of.'

install:
	@sh tools/dev/install.sh

demo: install
	$(VENV_PYTHON) tools/demo.py

test: lint
	$(PYTEST) $(PARALLEL) -m '$(QUICK)'

test-first: install
	$(PYTEST) $(PARALLEL) -m 'first and not gpu'

test-slow: install
	$(PYTEST) $(PARALLEL) -m 'slow and not gpu'

test-all: install
	$(PYTEST) $(PARALLEL) -m 'not alone and not gpu'
	$(PYTEST) -m alone tests/test_benchmark

test-oldest:
	$(MAKE) test-all VENV=.venv-oldest VERSIONS=oldest

test-latest:
	$(MAKE) test-all VENV=.venv-latest VERSIONS=latest

docs: install
	$(VENV_PYTHON) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

pictures: install
	$(VENV_PYTHON) tools/dev/pictures

lint: install
	@PYTHON=$(VENV_PYTHON) sh tools/dev/lint.sh

clean:
	@sh tools/dev/clean.sh
