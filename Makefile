# Every target creates .venv if needed; the first call on a fresh machine installs what is missing.
PYTHON ?= python3
TASK ?= alfworld
ALGO ?= grpo
MODEL ?=
ARGS ?=
# minutes of training; the main job has 15
BUDGET ?= $(if $(MODEL),,$(if $(filter alfworld,$(TASK)),15))
SIZE ?= small
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: FORCE help baseline test test-slow test-whole check lint tasks bench bench-trl curves systems eval serve board docs play list golden cards tokenizer clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/.made:
	@PYTHON=$(PYTHON) .ci/debian-packages
	$(PYTHON) -m venv .venv
	@touch $@

# the part of setup.cfg that installation depends on: all before the settings of pytest, mypy and coverage
NEEDS = sed '/^\[tool:pytest\]/,$$d' setup.cfg | cat - constraints.txt

.venv/.needs: .venv/.made FORCE
	@$(NEEDS) | cmp -s - $@ || $(NEEDS) > $@

FORCE:

COMMON = train,textworld,alfworld,webshop

.venv/.train: .venv/.made .venv/.needs
	$(BIN)/pip install -q -c constraints.txt -e '.[$(COMMON)]'
	@touch $@

# what the spec of a task names beyond COMMON; its namespace is left out of the file's name
TASK_EXTRAS = $(addprefix .venv/.task-,$(notdir $(TASK)))
EXTRAS = from lmgym.env.registry import find; print(*sorted({*find('$*').extras} - {*'$(COMMON)'.split(',')}), sep=',')

# a task that is not found is reported by the command that plays it
.venv/.task-%: .venv/.train
	@if extras=$$($(BIN)/python -c "$(EXTRAS)" 2>/dev/null); then \
	  { [ -z "$$extras" ] || $(BIN)/pip install -q -c constraints.txt -e ".[$$extras]"; } && touch $@; fi

.venv/.eval: .venv/.train
	$(BIN)/pip install -q -c constraints.txt -e '.[eval]'
	@touch $@

.venv/.dev: .venv/.train
	@PYTHON=$(PYTHON) .ci/debian-packages web sandbox desktop games
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

baseline: .venv/.train $(TASK_EXTRAS) ## train a reference baseline: TASK=alfworld ALGO=grpo ARGS='--seed 1' BUDGET=15 (minutes; BUDGET= for no limit)
	$(BIN)/lmgym train $(ALGO) $(TASK) $(if $(MODEL),--model '$(MODEL)') $(if $(BUDGET),--minutes $(BUDGET)) $(ARGS)

eval: .venv/.eval $(TASK_EXTRAS) ## evaluate a policy: TASK=alfworld MODEL=oracle ARGS='--episodes 64'
	$(BIN)/lmgym eval $(TASK) --model '$(or $(MODEL),tiny)' $(ARGS)

.venv/.serve: .venv/.train
	$(BIN)/pip install -q -c constraints.txt -e '.[serve]'
	@touch $@

serve: .venv/.serve $(TASK_EXTRAS) ## serve environments: TASK=wordle ARGS='--port 8700'
	$(BIN)/lmgym serve $(TASK) $(ARGS)

board: .venv/.dev ## build the leaderboard site under build/board
	$(BIN)/lmgym board $(ARGS)

docs: .venv/.dev ## build the documentation site under build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet --config-file docs/site/mkdocs.yml

play: .venv/.train $(TASK_EXTRAS) ## play a task by hand: TASK=wordle
	$(BIN)/lmgym play $(TASK) $(ARGS)

list: .venv/.train ## list the tasks
	$(BIN)/lmgym list $(ARGS)

test: .venv/.dev ## run the default test suite on all cores
	$(BIN)/python -m pytest -n auto

test-slow: .venv/.dev ## run the tests marked slow
	.ci/docker run $(BIN)/python -m pytest -m slow -n auto --dist worksteal

test-whole: .venv/.dev ## run the tests marked whole: every case that slow tests sample
	$(BIN)/python -m pytest -m whole -n auto --dist worksteal

lint: .venv/.dev ## run ruff, and mypy on the package as shipped
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf build && $(BIN)/pip install -q --no-deps --no-build-isolation --target build/typed .
	cd build/typed && ../../$(BIN)/mypy --config-file ../../setup.cfg --cache-dir ../../.mypy_cache -p lmgym

tasks: .venv/.dev ## check every task with lmgym check
	$(BIN)/lmgym check

check: lint test tasks ## run lint, test and tasks

bench: .venv/.dev ## measure speeds beside other libraries
	.ci/docker run $(BIN)/python tests/bench $(ARGS)

bench-trl: .venv/.dev ## time GRPO steps here and in TRL: ARGS='--turns 6 1 --precision bf16 fp32'
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.bench.beside_trl $(ARGS)

curves: .venv/.train ## draw learning curves of all baselines: SIZE=small|night|episodes|causes|lmrl|directions ARGS='--tune'
	$(BIN)/lmgym curves --size $(SIZE) --write baselines/curves/README.md $(ARGS)

systems: .venv/.dev ## run published systems against their ablations: ARGS='arpo supo', ARGS=--trial
	$(BIN)/lmgym systems $(if $(findstring --trial,$(ARGS)),,--write baselines/recipes/README.md) $(ARGS)

golden: .venv/.dev ## record the golden episodes of a task: TASK=wordle
	$(BIN)/lmgym golden $(TASK) --write

cards: .venv/.dev ## write the table of tasks, the task cards and the gallery of the documentation
	$(BIN)/lmgym list --write
	$(BIN)/python docs/site/gallery.py

tokenizer: .venv/.dev ## train the tokenizer of `tiny` on task text: ARGS='--task webshop --words webshop'
	$(BIN)/lmgym tokenizer $(ARGS)

clean: ## remove everything that make created except runs/
	rm -rf .venv .bench-venv build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
