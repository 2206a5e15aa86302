# Every target does its own set-up: a virtual environment in .venv, with the files whose hashes are in
# the lock files. What a platform needs besides is pinned by constraints.txt.
PYTHON ?= python3
SECONDS ?= 3600
BIN := .venv/bin
TYPESCRIPT := 5.9.3
PEERS := .venv/peers
LOWEST := .venv/lowest
SITE := .venv/site
NODE := .venv/node-$(TYPESCRIPT)
TSC := $(NODE)/node_modules/.bin/tsc
SCRIPTS := src/twofold/report/page/scripts/jsconfig.json --incremental --tsBuildInfoFile $(NODE)/scripts.tsbuildinfo
# Python compiles what it imports, which is a small part of all files, and keeps the result.
unexport PYTHONDONTWRITEBYTECODE
# The parts of the environment are installed side by side, and so are linters.
MAKEFLAGS += --jobs=3
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
LOCKED := $(INSTALL) --no-deps --require-hashes
RECENT := "import sys; sys.exit(sys.version_info < (3, 11) and 'twofold needs Python 3.11 or later: make PYTHON=python3.11 ...')"
SHOWN := figures,report,images,frames
PIP := $(INSTALL) -c constraints.txt

.PHONY: demo test test-fast test-slow test-adapters test-lowest test-matrix release lock lint lint-style lint-scripts fmt bench bench-peers torture documents site clean

# Three methods on real Rotated MNIST, shortened: about two minutes on two cores.
demo: .venv/.package
	$(BIN)/twofold run rotated-mnist er er+gem er+agem --iterations 250 --out runs/demo
	$(BIN)/twofold figure gap rotated-mnist --runs runs/demo --output runs/demo/gap.png
	$(BIN)/twofold report runs/demo --output runs/demo/report.html
	@echo "The figure opens in a browser, too: file://$(CURDIR)/runs/demo/gap.png"

# Three processes on two cores, since many tests wait for processes of their own. mypy runs beside them.
test: lint-style lint-scripts
	$(BIN)/mypy > .venv/mypy.log 2>&1 & \
	  $(BIN)/pytest -n 3 --dist loadfile $(PYTEST); tests=$$?; \
	  wait $$! || { cat .venv/mypy.log; exit 1; }; exit $$tests

# Less than a minute: a case of every test that starts no processes and reads no real images.
test-fast: .venv/.tools
	$(BIN)/pytest -n 2 --dist loadfile --fast $(PYTEST)

# What waits for minutes, such as a Ray cluster whose head is killed.
test-slow: .venv/.tools
	$(BIN)/pytest -m slow $(PYTEST)

# The adapters with Lightning, Transformers and Avalanche, which have an environment of their own.
test-adapters: .venv/.peers
	$(PEERS)/bin/python -m pytest tests/adapters $(PYTEST)

lint: lint-style lint-scripts
	$(BIN)/mypy

lint-style: .venv/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The types of the page's scripts. This needs npm, which nothing else does.
lint-scripts: $(if $(shell command -v npm),$(TSC))
	@if command -v npm >/dev/null && test -x $(TSC); then $(TSC) -p $(SCRIPTS); \
	else echo "The page's scripts were not type-checked: this needs npm, and TypeScript from its registry."; fi

fmt: .venv/.tools
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.package
	$(BIN)/python bench

# Kills, crashes, power failures, full disks, damaged and hostile files, lost Ray nodes: docs/reliability.md.
torture: .venv/.package
	$(BIN)/python -m torture --seconds $(SECONDS)

# Against Avalanche, in the adapters' environment.
bench-peers: .venv/.peers
	$(PEERS)/bin/python bench --only peers --json bench-peers.json

# The tables and pictures in README.md, docs/ and replication/, from the runs in replication/runs/.
documents: .venv/.package
	$(BIN)/python docs/build.py

# The documents, the reference and the notebooks as a site: build/site/index.html. Any dead link,
# failing notebook or example, or public name without a page is an error.
site: .venv/.site
	$(SITE)/bin/python docs/site/build.py build/site
	@echo "The site opens in a browser: file://$(CURDIR)/build/site/index.html"

$(TSC):
	mkdir -p $(NODE)
	-npm install --silent --no-save --no-package-lock --no-audit --no-fund --fetch-retries=0 \
	  --prefix $(NODE) typescript@$(TYPESCRIPT)

# After a change of constraints.txt. WHEELS names builds that the index does not list, such as torch's
# for processors only: make lock WHEELS='torch-2.13.0+cpu-...whl'
lock: .venv/.tools
	$(INSTALL) uv
	$(BIN)/python docs/lock.py --uv $(BIN)/uv $(addprefix --wheel ,$(WHEELS))

# The lowest versions that pyproject.toml permits, except for torch, which is the pinned one. uv does
# not read pip's settings, which may say where a build of torch lies that the index does not list.
# mypy is left out: its stubs for numpy need a recent one.
ifdef PIP_FIND_LINKS
test-lowest test-matrix: export UV_FIND_LINKS := $(PIP_FIND_LINKS)
endif
test-lowest: .venv/.tools
	$(INSTALL) uv
	test -x $(LOWEST)/bin/python || $(BIN)/uv venv --quiet --seed --python $(BIN)/python $(LOWEST)
	echo "torch==$$($(BIN)/python -c 'import torch; print(torch.__version__)')" > $(LOWEST)/torch.txt
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --override $(LOWEST)/torch.txt \
	  --extra dev pyproject.toml --output-file $(LOWEST)/lowest.txt
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python -r $(LOWEST)/lowest.txt
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --no-deps -e .
	$(LOWEST)/bin/python -m pytest -n 3 --dist loadfile -m 'not real_data and not slow' --ignore tests/adapters \
	  --ignore tests/experiments/ray --deselect tests/test_keywords.py::test_type_checkers_know_every_keyword \
	  $(PYTEST)

# Wheel and sdist in dist/, checked, with the changelog section and the message of the tag.
release: .venv/.tools
	$(PIP) -e '.[release]'
	rm -rf dist build/lib build/bdist.*
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python docs/release.py

# The fast part of the suite in every Python from 3.11 to 3.14 that is here or can be fetched.
test-matrix: .venv/.tools
	$(INSTALL) uv
	$(BIN)/python docs/matrix.py --uv $(BIN)/uv $(PYTEST)

clean:
	rm -rf .venv

# pip downloads and unpacks one file at a time, so three parts that share no package are installed at
# once. The package itself is built with the locked setuptools.
.venv/.python:
	@test -x $(BIN)/python || { $(PYTHON) -c $(RECENT) && $(PYTHON) -m venv .venv; }
	touch $@

.venv/.locked: requirements.lock | .venv/.python
	$(LOCKED) -r $<
	touch $@

.venv/.dev-locked: requirements-dev.lock | .venv/.python
	$(LOCKED) -r $<
	touch $@

.venv/.torch: requirements-torch.lock constraints.txt | .venv/.python
	$(PIP) --no-deps --report .venv/torch.json torch
	touch $@

.venv/.package: pyproject.toml constraints.txt .venv/.locked .venv/.torch
	$(BIN)/python docs/lock.py --check .venv/torch.json
	$(PIP) --no-build-isolation -e '.[$(SHOWN)]'
	touch $@

.venv/.tools: .venv/.package .venv/.dev-locked
	$(PIP) 'twofold[dev]'
	touch $@

# Environments that have what .venv has, and more.
layered = test -x $(1)/bin/python || $(BIN)/python -m venv --without-pip $(1) && \
	site=$$($(1)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))") && \
	  $(BIN)/python -c "import sysconfig; print('import site; site.addsitedir(%r)' % sysconfig.get_path('purelib'))" \
	    > $$site/base.pth
in_layer = $(subst /pip ,/pip --python $(1)/bin/python ,$(PIP))

.venv/.peers: .venv/.tools tests/adapters/sitecustomize.py
	$(call layered,$(PEERS)) && cp tests/adapters/sitecustomize.py $$site/
	$(call in_layer,$(PEERS)) 'twofold[lightning,huggingface,avalanche]'
	touch $@

.venv/.site: .venv/.package
	$(call layered,$(SITE))
	$(call in_layer,$(SITE)) 'twofold[site]'
	touch $@
