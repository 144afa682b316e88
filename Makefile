# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The front door: `make help` lists the targets. All set-up is part of them.

SHELL    := /bin/sh
CARGO    ?= cargo
KERNEL   ?= 6.12
KERNELS  ?= 6.12 6.1
V        ?= 0
Q        := $(if $(filter 1,$(V)),,@)
CACHE    := $(or $(DISKTIME_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/disktime)
STATIC   := x86_64-unknown-linux-gnu
BIN      := target/$(STATIC)/release
VM       := $(BIN)/disktime-vm
BENCH    := $(BIN)/disktime-bench
# A field of what the harness knows of a kernel: $(call kernel,6.12,btf)
kernel    = $$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' \
	$(CACHE)/kernels/$(1)/kernel.json $(2))
MODULES  := Kbuild $(shell find core kernel -type f 2>/dev/null)

export CARGO_TERM_PROGRESS_WHEN ?= auto

# What a failed check leaves must not pass the next time.
.DELETE_ON_ERROR:
# Modules are kept once built, not taken for intermediate files.
.SECONDARY:
.PHONY: help demo test build torture bench vm-shell lint clean \
	setup setup-test setup-lint tools modules check-core check-rust check-vm measure sim report

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## three cgroups, 40/20/10 on one disk: disktime beside bfq and none (about 2 minutes)
	$(Q)$(BENCH) demo --kernel $(KERNEL) --guest $(BIN)

test: setup-test build check-core check-rust check-vm ## everything but the long measurements

build: setup tools modules ## the command, the harness and the modules

sim: tools ## all scenarios in the simulator, in virtual time
	$(Q)$(BENCH) run scenarios/*.toml --on sim --controller disktime,none --json target/sim.jsonl

measure: build ## every scenario in machines, those of the README among them (hours)
	$(Q)$(BENCH) run scenarios/*.toml --kernel $(KERNEL) --guest $(BIN) --json target/measure.jsonl

# The matrix that docs/RESULTS.md shows. It can be stopped and gone on with: what is in target/bench
# and has not changed is not measured again.
MATRIX = uchida-test1 uchida-test1-mixed uchida-test2 ncq-readers-writers dm-band-test1 \
	dm-band-test2 dm-band-test3 dm-band-test4 v8-test2 v8-test3 v8-test4 v8-test5 goyal-readers \
	sizes directions read-write deep-drive three-groups several-writers writers light-heavy cached-disk \
	shared-fs-ext4 network-fs network-volume network-writer instructions

bench: build ## the matrix of scenarios and controllers, into docs/RESULTS.md (many hours; goes on where it was stopped)
	$(Q)$(BENCH) run scenarios/*.toml --on sim --controller disktime,none --resume target/bench/sim \
		>target/bench-sim.txt || test $$? = 6
	$(Q)$(BENCH) run $(MATRIX:%=scenarios/%.toml) --on vm --kernel $(KERNEL) --guest $(BIN) \
		--instructions --resume target/bench/vm >target/bench-vm.txt || test $$? = 6
	$(Q)$(MAKE) --no-print-directory report

report: ## docs/RESULTS.md and target/bench/report.html from what is in target/bench
	$(Q)$(BENCH) report target/bench/sim/*.jsonl target/bench/vm/*.jsonl \
		--title "disktime: results" --notes docs/results-notes.txt --out docs/RESULTS.md
	$(Q)$(BENCH) report target/bench/sim/*.jsonl target/bench/vm/*.jsonl \
		--title "disktime: results" --notes docs/results-notes.txt --out target/bench/report.html
	@echo "docs/RESULTS.md, target/bench/report.html"

vm-shell: build ## a shell in a machine with the modules at hand
	$(Q)$(VM) shell --kernel $(KERNEL) --module null_blk:nr_devices=0 \
		--ko target/kernel/$(KERNEL)/disktime.ko \
		--ko target/kernel/$(KERNEL)/disktime-iosched.ko --bin $(BIN)/disktime

lint: setup-lint build ## formatters and static checkers, changing nothing
	$(Q)$(CARGO) fmt --check
	$(Q)$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(Q)shellcheck vm/setup vm/cases/*.sh

clean: ## what was built here; the cache outside stays
	$(Q)rm -rf target

# ---- parts ----

setup:
	$(Q)vm/setup tools rust crates

setup-test: setup
	$(Q)vm/setup sanitize

setup-lint: setup
	$(Q)vm/setup lint

# Static, because the machines have no libraries of their own; the host runs the
# same programs.
tools: setup
	$(Q)RUSTFLAGS="-C target-feature=+crt-static" $(CARGO) build --release --locked \
		--target $(STATIC) -p disktime -p disktime-bench -p disktime-modeldisk -p disktime-vm

modules: $(foreach k,$(KERNEL),target/kernel/$(k)/disktime-iosched.ko)

# The modules for kernel %, in a copy of their sources: objects and the
# declarations generated from that kernel's BTF land beside them. target/planted
# has modules that declare one structure wrongly, which must refuse to load.
define build-modules
	$(Q)$(VM) fetch $* >/dev/null
	$(Q)mkdir -p $(@D)
	$(Q)cp -pR Kbuild core kernel $(@D)
	@echo "modules: building for kernel $* in $(@D)"
	$(Q)$(MAKE) --no-print-directory -C $(call kernel,$*,headers_dir) M=$(abspath $(@D)) \
		CC=$(call kernel,$*,cc) DISKTIME_BTF=$(call kernel,$*,btf) DISKTIME_WERROR=1 \
		$(if $(filter 1,$(V)),V=1,-s) $(1) modules
	$(Q)nm $(@D)/disktime.ko | awk '$$2 ~ /^[TDBR]$$/ && $$3 ~ /^dt_/ { \
		print "error: " $$3 " is not in core/names.h"; bad = 1 } END { exit bad }'
endef

target/kernel/%/disktime-iosched.ko: $(MODULES) | tools
	$(call build-modules)

target/planted/%/disktime-iosched.ko: $(MODULES) | tools
	$(call build-modules,DISKTIME_PLANT_FAULT=1)

target/cases/dtcase: vm/cases/dtcase.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -O2 -Wall -Wextra -pthread -static -o $@ $<

# ---- tests ----

check-core: setup-test
	$(Q)$(CARGO) test --locked --release -p disktime-core --features sanitize

check-rust: setup
	$(Q)$(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(Q)$(CARGO) test --locked --workspace

# SCALE=full does what the torture cases promise, about ten times as much.
SCALE ?= short
ALL_MODULES = $(foreach k,$(KERNELS),target/kernel/$(k)/disktime-iosched.ko \
	target/planted/$(k)/disktime-iosched.ko)

check-vm: $(ALL_MODULES) target/cases/dtcase tools
	$(Q)$(VM) suite vm/cases --var ko=$(abspath target/kernel) \
		--var planted=$(abspath target/planted) --var tools=$(abspath target/cases) \
		--var bin=$(abspath $(BIN)) --var scenarios=$(abspath scenarios) \
		--var scale=$(SCALE)

torture: build ## the cases in machines at full length (an hour)
	$(Q)$(MAKE) --no-print-directory check-vm SCALE=full
