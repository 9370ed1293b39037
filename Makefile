# SPDX-License-Identifier: Apache-2.0
# The whole build of granary, in one file. `make help` lists the targets.
#
# A new source file is built, and a new test run, with nothing to register: files are found by
# wildcard. Objects of each variant lie under build/$(V), so `make V=asan unit` needs no clean.
# Nothing that `make deps` installs is looked up while this file is read, only in recipes.

comma := ,
VERSION := $(shell sed -n 's/^\#define GRANARY_VERSION_[MP][A-Z]* \([0-9]*\)$$/\1/p' include/granary/granary.h | paste -sd.)
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

# ---- what may be overridden -------------------------------------------------------------------

V ?= release
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
WERROR ?= 0
PREFIX ?= /usr/local
INCLUDEDIR ?= $(PREFIX)/include
LIBDIR ?= $(PREFIX)/lib
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
INSTALL ?= install
CLANG_FORMAT ?= clang-format
# A Python that has torch: torch-error, torch-check; with CUDA: gpu-torch, bench-peer.
PYTHON ?= python3
CUDA_HOME ?= $(patsubst %/include/cuda.h,%,$(wildcard /usr/local/cuda/include/cuda.h))

# ---- variants ---------------------------------------------------------------------------------

flags_release := -O2 -g
flags_debug := -O0 -g3 -DGR_CHECK=1
flags_asan := -O1 -g -fno-omit-frame-pointer -fsanitize=address -DGR_CHECK=1 -DGR_SANITIZED=1
flags_ubsan := -O1 -g -fsanitize=undefined -fno-sanitize-recover=all -DGR_CHECK=1 -DGR_SANITIZED=1
flags_tsan := -O1 -g -fsanitize=thread -DGR_CHECK=1 -DGR_SANITIZED=1
flags_cov := -O0 -g --coverage -DGR_CHECK=1
flags_fuzz := -O1 -g -fno-omit-frame-pointer -fsanitize=address,fuzzer-no-link -DGR_CHECK=1
VARIANTS := release debug asan ubsan tsan cov fuzz
ifeq ($(filter $(V),$(VARIANTS)),)
$(error V=$(V) is not a variant; there are: $(VARIANTS))
endif

B := build/$(V)
# Sanitizers and gcov bring undefined symbols that only the program resolves.
zdefs := $(if $(filter release debug,$(V)),-Wl$(comma)-z$(comma)defs)

warnings := -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror)
common = -D_GNU_SOURCE $(warnings) $(flags_$(V)) -pthread -Iinclude -Isrc -MMD -MP $(CPPFLAGS)
cflags = -std=c11 $(common) $(CFLAGS)
# Two counters in one vector register would be loaded while the stores of each are still on their way.
lib_flags := -fPIC -fvisibility=hidden -fno-semantic-interposition -fno-tree-slp-vectorize -DGRANARY_BUILD \
             -Wstrict-prototypes -Wmissing-prototypes -Wvla
libs := -ldl
# Evaluated by the shell of a recipe. Without zlib's headers, gzipped traces go through gzip(1).
zlib = $$(printf '\#include <zlib.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo -lz)
check_cflags = $$(pkg-config --cflags check)
check_libs = $$(pkg-config --libs check)

# ---- sources ----------------------------------------------------------------------------------

files = $(sort $(foreach f,$(wildcard $1/*),$(if $(wildcard $f/.),$(call files,$f,$2),$(filter $2,$f))))

lib_src := $(filter-out src/tool/% src/adapter/%,$(call files,src,%.c))
tool_src := $(wildcard src/tool/*.c)
page_src := $(call files,src/tool/page,%)
bench_src := $(wildcard bench/*.c)
# These have a main(); the other files of bench are parts of them.
bench_names := fragmentation latency growth capture guard
unit_src := $(call files,test/unit,%.c)
prop_src := $(call files,test/prop,%.c)
fault_src := $(call files,test/fault,%.c)
support_src := $(wildcard test/support/*.c)
fake_src := $(wildcard test/fake/*.c)
fuzz_names := $(patsubst test/fuzz/fuzz_%.c,%,$(wildcard test/fuzz/fuzz_*.c))
gpu_src := $(wildcard test/gpu/*.c)
# Files whose names end with _cuda include the toolkit's cuda.h.
abi_src := $(filter-out $(if $(CUDA_HOME),,%_cuda.c %_cuda.cpp),$(wildcard test/abi/*.c test/abi/*.cpp))
formatted := $(call files,src,%.c %.h %.cpp) $(call files,include,%.h) $(call files,test,%.c %.h %.cpp) $(call files,bench,%.c %.h)

objects = $(patsubst %.c,$(B)/%.o,$1)
lib_obj := $(call objects,$(lib_src))
tool_obj := $(call objects,$(tool_src))
torch_obj := $(B)/src/adapter/torch.o
# What the benchmark and the tests borrow from the tool: all but its main().
tool_part := $(filter-out $(B)/src/tool/main.o,$(tool_obj))
bench_bin := $(addprefix $(B)/bench/,$(bench_names))
bench_part := $(filter-out $(bench_bin:=.o),$(call objects,$(bench_src)))
support_obj := $(call objects,$(support_src))
fakes := $(patsubst test/fake/%.c,$(B)/test/fake/%.so,$(fake_src))
gpu_bin := $(patsubst %.c,$(B)/%,$(gpu_src))

static := $(B)/libgranary.a
shared := $(B)/libgranary.so.$(VERSION)
tool := $(B)/granary
torch := $(B)/libgranary_torch.so
torch_error := $(B)/libgranary_torch_error.so
torch_files := $(B)/granary_torch.py $(B)/torch_error.cpp
bench := $(B)/bench/fragmentation

# `make -j deps check` must not compile before the packages are there.
first := $(filter deps,$(MAKECMDGOALS))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all lib tool torch torch-error torch-check gpu-torch man deps bench bench-programs bench-latency bench-growth bench-capture bench-peer bench-peer-programs guard \
        check test unit prop soak mutants tight model fault fuzz fuzz-corpus abi tool-check page-check doc-check check-install snapshot-check gpu-check gpu-history gpu-programs asan ubsan \
        tsan valgrind cov lint layers lint-size lint-ledger lint-options lint-mutants lint-manual lint-symbols lint-cppcheck format format-check \
        install install-torch uninstall clean dist help FORCE

# ---- building ---------------------------------------------------------------------------------

# One short line for each step; LOUD=1 shows the commands.
say = $(if $(LOUD),,@printf '  %-4s %s\n' '$1' '$(patsubst build/%,%,$@)';)

all: lib tool ## Build the static and the shared library and the tool (the default).

lib: $(static) $(shared) ## Build libgranary.a and libgranary.so.

tool: $(tool) ## Build the granary command.

# Remembers how objects were compiled, so that another CC or CFLAGS compiles them again.
$(B)/flags: note = $(CC) $(CXX) $(cflags) $(LDFLAGS)
$(B)/toolkit: note = $(CUDA_HOME)
$(B)/flags $(B)/toolkit: FORCE | $(first)
	@mkdir -p $(@D)
	@echo '$(note)' | cmp -s - $@ || echo '$(note)' > $@

$(B)/src/%.o: src/%.c $(B)/flags | $(first)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(cflags) $(lib_flags) -c $< -o $@

$(B)/src/tool/%.o: src/tool/%.c $(B)/flags | $(first)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(cflags) -c $< -o $@

# The page of `granary report`: one file, which src/tool/page.c takes in. A line @@NAME@@ stands for a file.
page := $(B)/src/tool/page.html
$(page): $(page_src) $(B)/flags
	@mkdir -p $(@D)
	$(call say,PAGE)awk -v dir=src/tool/page/ '/^@@[^@]+@@$$/ {f = dir substr($$0, 3, length($$0) - 4); \
	    while ((got = getline line < f) > 0) print line; if (got < 0) {print f ": missing" > "/dev/stderr"; exit 1} \
	    next} {print}' src/tool/page/page.html > $@
$(B)/src/tool/page.o: $(page)
$(B)/src/tool/page.o: private common += -DPAGE_HTML='"$(page)"'

$(B)/bench/%.o: bench/%.c $(B)/flags | $(first)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(cflags) -c $< -o $@

# Lists of objects, so that an archive or a runner forgets a file that was deleted.
$(B)/%.list: FORCE | $(first)
	@mkdir -p $(@D)
	@echo '$(list)' | cmp -s - $@ || echo '$(list)' > $@
$(B)/lib.list: list = $(lib_obj)

$(static): $(lib_obj) $(B)/lib.list
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $(lib_obj)

$(shared): $(lib_obj) $(B)/lib.list src/granary.map
	$(call say,LD)$(CC) $(cflags) -shared -Wl,-soname,libgranary.so.$(SOVERSION) -Wl,--version-script,src/granary.map $(zdefs) \
	    $(LDFLAGS) $(lib_obj) $(libs) -o $@
	@ln -sf $(@F) $(B)/libgranary.so.$(SOVERSION)
	@ln -sf $(@F) $(B)/libgranary.so

# libgranary_torch.so does without the error library: where that cannot be built, it is said and is no failure.
torch: $(torch) $(torch_files) ## Build libgranary_torch.so, by which PyTorch runs on granary (needs a C++ compiler).
	@$(have_python); $(build_error) >$(torch_error_log) 2>&1; \
	case $$? in 0|77) cat $(torch_error_log) >&2; rm $(torch_error_log); exit 0;; esac; \
	tail -n 1 $(torch_error_log) >&2; \
	echo "torch: what the compiler said is in $(torch_error_log); make torch-error tries again" >&2; \
	echo "torch: $(torch) is built and works without it: running out of memory raises RuntimeError, not torch.OutOfMemoryError" >&2

torch-error: $(torch) $(torch_files) ## Build libgranary_torch_error.so for the PyTorch of PYTHON, where it has one.
	@$(have_python); $(build_error) || test $$? = 77

torch_error_log := $(torch_error:.so=.log)
have_python = command -v '$(firstword $(PYTHON))' >/dev/null || { echo "torch-error: no $(or $(PYTHON),Python): skipped"; exit 0; }
# The same command as a user's. Status 77: there is no PyTorch, and it has said so.
build_error = GRANARY_TORCH_LIBRARY=$(torch) CXX='$(CXX)' CXXFLAGS='$(CXXFLAGS)' $(PYTHON) $(B)/granary_torch.py --build-error-library

# PyTorch brings the C++ library with it; nothing else of C++ is used.
$(B)/src/adapter/%.o: src/adapter/%.cpp $(B)/flags | $(first)
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) -std=c++17 $(common) $(CXXFLAGS) -fPIC -fvisibility=hidden -DGRANARY_BUILD -c $< -o $@

$(torch): $(torch_obj) $(B)/src/adapter/torch_throw.o $(static) src/adapter/torch.map
	$(call say,LD)$(CXX) $(common) -shared -Wl,-soname,$(@F) -Wl,--version-script,src/adapter/torch.map $(zdefs) $(LDFLAGS) \
	    $(filter %.o,$^) -Wl,--whole-archive $(static) -Wl,--no-whole-archive $(libs) -o $@

$(torch_files): $(B)/%: src/adapter/%
	@mkdir -p $(@D)
	@cp $< $@

$(tool): $(tool_obj) $(static)
	$(call say,LD)$(CC) $(cflags) $(LDFLAGS) $(tool_obj) $(static) $(libs) $(zlib) -o $@

$(B)/bench/parts.list: list = $(bench_part)
$(B)/bench/parts.a: $(bench_part) $(B)/bench/parts.list
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $(bench_part)

$(bench_bin): $(B)/bench/%: $(B)/bench/%.o $(B)/bench/parts.a $(tool_part) $(static)
	$(call say,LD)$(CC) $(cflags) $(LDFLAGS) $< $(B)/bench/parts.a $(tool_part) $(static) $(libs) -lm $(zlib) -o $@

# The table of options as records for doc/options.awk, by the preprocessor.
option_records = $(CC) -E -P -x c src/policy/options.def \
    -D'GR_OPTION(key,type,field,low,high,values,standard,when,sentence)=@@option@key@when@values@standard@sentence' \
    -D'GR_IGNORED(key,type,low,high,values,standard,sentence)=@@ignored@key@ANY@values@standard@sentence' \
    -D'GR_ALIAS(other,key)=@@alias@other@key'

man: $(B)/granary-options.7 ## Make the manual page of the options from their table; doc/granary.1 is that of the command.
$(B)/granary-options.7: doc/granary-options.7 doc/options.awk src/policy/options.def $(B)/flags
	$(call say,MAN)$(option_records) | awk -v format=man -v page=$< -f doc/options.awk > $@

# What building, measuring and testing need.
packages := $(filter gcc g++ clang,$(sort $(CC) $(CXX))) check pkg-config zlib1g-dev libdw1 libunwind8
installed = dpkg-query -W -f '$${Status}\n' $$p 2>/dev/null | grep -q '^install ok installed'

deps: ## Install the missing Debian packages (as root; says what it needs otherwise).
	@missing=; \
	for p in $(packages) $(WITH); do $(installed) || missing="$$missing $$p"; done; \
	test -n "$$missing" || exit 0; \
	command -v apt-get >/dev/null || { echo "deps: needs$$missing, and there is no apt-get here" >&2; exit 1; }; \
	test "$$(id -u)" = 0 || { echo "deps: not root; needs: apt-get install$$missing" >&2; exit 1; }; \
	echo "deps: installing$$missing"; \
	export DEBIAN_FRONTEND=noninteractive; \
	apt-get install -y -qq --no-install-recommends $$missing >/dev/null 2>&1 || \
	    { apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing >/dev/null; }

# ---- measuring --------------------------------------------------------------------------------

bench: $(bench) ## Replay bench/traces in both modes; table, JSON and picture go to build/bench.
	@mkdir -p build/bench
	@$(bench) --traces bench/traces --recorded bench/pytorch.tsv --out build/bench

# Programs that use the GPU when there is one, else the simulated device. ARGS goes to the program.
bench-programs: $(bench_bin) $(B)/bench/reads.ptx ## Build every benchmark.
bench-latency bench-growth bench-capture: bench-%: $(B)/bench/% $(B)/bench/reads.ptx
	@mkdir -p build/bench
	@$< --out build/bench $(if $(findstring growth,$@),--reads $(B)/bench/reads.ptx) $(ARGS)
bench-latency: ## What a call costs, by shape of traffic; build/bench/latency.json.
bench-growth: ## Cold growth beside the driver's own calls, and kernel bandwidth; build/bench/growth.json.
bench-capture: ## record_stream inside a graph capture; build/bench/capture.json.

# A kernel for bench-growth. Without nvcc the file is empty and the random reads are left out.
nvcc := $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc))
$(B)/bench/reads.ptx: bench/reads.cu $(B)/toolkit | $(first)
	@mkdir -p $(@D)
	$(call say,NVCC)$(if $(CUDA_HOME),$(if $(nvcc),$(nvcc) -ptx -arch=compute_80 $< -o $@,: > $@),: > $@)

# PyTorch's allocator in the same shapes.
peers := $(patsubst bench/peer/%.cpp,$(B)/bench/%,$(wildcard bench/peer/*.cpp))
bench-peer: $(peers) ## The same shapes on PyTorch's allocator and cudaMallocAsync, on a GPU.
	@bench/peer/run.sh $(B)/bench build/bench $(PYTHON)
bench-peer-programs: $(peers)
$(peers): $(B)/bench/%: bench/peer/%.cpp bench/peer/timing.h bench/peer/build.sh $(B)/bench/measure.o
	@mkdir -p $(@D)
	$(call say,CXX)bench/peer/build.sh $< $(B)/bench/measure.o $@ $(CXX) $(PYTHON) '$(CUDA_HOME)'

guard: $(B)/bench/guard ## Instructions of the main shapes under callgrind, held against bench/budget.tsv.
	@test/lint/budget.sh $(B)/bench/guard bench/budget.tsv $(UPDATE)

# ---- testing ----------------------------------------------------------------------------------

check: unit prop fault model tight fuzz-corpus snapshot-check abi tool-check torch-check doc-check check-install ## Run every test that needs no GPU.
test: check ## The same as check.

# The address sanitizer guesses where the thread-local storage of loaded libraries lies, and crashes when it
# looks for leaks where a guess was wrong: it is not to guess.
# Check kills a test after 4 seconds; sanitizers are slower than that is meant for.
scale := $(if $(filter asan ubsan tsan cov debug,$(V)),10,4)
run = GRANARY_TEST_FAKES=$(abspath $(B)/test/fake) GRANARY_TEST_GOLDEN=$(abspath test/golden) CK_TIMEOUT_MULTIPLIER=$(scale) \
      ASAN_OPTIONS=$${ASAN_OPTIONS:-detect_leaks=1}:abort_on_error=0:intercept_tls_get_addr=0 \
      TSAN_OPTIONS=$${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}

unit: $(B)/test/unit/runner $(fakes) ## Run the unit tests.
	@$(run) $<

prop: $(B)/test/prop/runner $(fakes) ## Run the property tests.
	@$(run) $<

soak: $(B)/test/prop/runner ## Run ten million random programs over all cores (PROGRAMS=n, FIRST=seed).
	@$(run) CK_RUN_SUITE=order GRANARY_PROGRAMS=$(or $(PROGRAMS),10000000) GRANARY_FIRST=$(or $(FIRST),100000000) $<

tight: $(B)/granary ## Recorded jobs take no more memory than promised, and end on the smallest cards.
	@test/tight/check.sh $< bench/traces/*.trace.gz

mutants: ## Break the rules of stream order and of the index one by one, and expect the random programs to find it.
	@MAKE='$(MAKE)' PROGRAMS='$(PROGRAMS)' MUTANT='$(MUTANT)' test/mutation/run.sh $(abspath build/mutants)

model: $(B)/test/model/bias $(B)/test/model/ticket ## Explore all interleavings of models of the biased lock and of tickets (ARGS=-t: how their faults go wrong).
	@$(B)/test/model/bias $(ARGS) && $(B)/test/model/ticket $(ARGS)

fault: $(B)/test/fault/runner $(fakes) ## Fail every driver call and every host allocation in turn.
	@$(run) $<

$(B)/test/%.o: test/%.c $(B)/flags | $(first)
	@mkdir -p $(@D)
	@pkg-config --exists check || { echo "Check is missing: run make deps" >&2; exit 1; }
	$(call say,CC)$(CC) $(cflags) -Itest $(check_cflags) -c $< -o $@

# The list of suites is made from file names: test_x.c defines Suite *suite_x(void).
suite_names = $(sort $(patsubst test_%.c,suite_%,$(notdir $(filter %.c,$(foreach f,$1,$(if $(filter test_%,$(notdir $f)),$f))))))
$(B)/test/%/suites.c: FORCE | $(first)
	@mkdir -p $(@D)
	@{ echo '/* Made by the Makefile from the names of the test files. */'; \
	   echo '#include "support/suites.h"'; \
	   for s in $(call suite_names,$($*_src)); do echo "Suite *$$s(void);"; done; \
	   echo 'const char *const runner_kind = "$*";'; \
	   echo 'const runner_maker runner_suites[] = {'; \
	   for s in $(call suite_names,$($*_src)); do echo "    $$s,"; done; \
	   echo '    NULL};'; } > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(B)/test/%/suites.o: $(B)/test/%/suites.c $(B)/flags
	@pkg-config --exists check || { echo "Check is missing: run make deps" >&2; exit 1; }
	$(call say,CC)$(CC) $(cflags) -Itest $(check_cflags) -c $< -o $@

define runner
$(B)/test/$1/objects.list: list = $$(call objects,$$($1_src))
$(B)/test/$1/runner: $$(call objects,$$($1_src)) $(B)/test/$1/suites.o $(support_obj) $(tool_part) $(static) $(B)/test/$1/objects.list
	$$(call say,LD)$$(CC) $$(cflags) $$(LDFLAGS) $2 $$(filter %.o,$$^) $(static) $$(libs) -lm $$(check_libs) $$(zlib) -o $$@
endef
$(eval $(call runner,unit,))
$(B)/test/unit/runner: $(torch_obj)
$(eval $(call runner,prop,))
# Every host allocation of the library goes through these two, so that the sweep can refuse it.
wrap := $(if $(filter %/host_wrap.c,$(fault_src)),-Wl$(comma)--wrap=gr_host_take -Wl$(comma)--wrap=gr_host_give)
$(eval $(call runner,fault,$(wrap)))

fuzz-corpus: $(fuzz_names:%=$(B)/test/fuzz/plain_%) ## Run the fuzz targets over their corpus and a few changes of it.
	@for n in $(fuzz_names); do $(run) $(B)/test/fuzz/plain_$$n test/fuzz/corpus/$$n $(or $(CHANGES),2000) || exit 1; done

$(B)/test/model/bias: $(call objects,test/model/bias.c test/model/main.c)
$(B)/test/model/ticket: $(call objects,test/model/ticket.c)
$(B)/test/model/bias $(B)/test/model/ticket:
	$(call say,LD)$(CC) $(cflags) $(LDFLAGS) $^ -o $@

# Links what the tests link, but for Check.
fuzz_link = $(CC) $(cflags) $(LDFLAGS) $(filter %.o,$^) $(static) $(libs) -lm $(zlib) -o $@
$(B)/test/fuzz/plain_%: $(B)/test/fuzz/plain.o $(B)/test/fuzz/fuzz_%.o $(tool_part) $(static)
	$(call say,LD)$(fuzz_link)
$(B)/test/fuzz/run_%: $(B)/test/fuzz/fuzz_%.o $(tool_part) $(static)
	$(call say,LD)$(fuzz_link) -fsanitize=address,fuzzer

fuzz: ## Run each fuzz target with libFuzzer (needs clang; FUZZ=name, FUZZ_SECONDS=n; finds go to build/fuzz).
	@$(MAKE) --no-print-directory V=fuzz CC=clang $(addprefix fuzz-,$(or $(FUZZ),$(fuzz_names)))
fuzz-%: $(B)/test/fuzz/run_%
	@mkdir -p build/fuzz/corpus/$*
	@ASAN_OPTIONS=detect_leaks=1 $< -max_total_time=$(or $(FUZZ_SECONDS),60) -max_len=4096 -timeout=5 -print_final_stats=1 \
	    $(addprefix -dict=,$(wildcard test/fuzz/$*.dict)) -artifact_prefix=build/fuzz/$*- \
	    build/fuzz/corpus/$* test/fuzz/corpus/$*

# Stand-ins for foreign libraries, loaded by tests with dlopen from $$GRANARY_TEST_FAKES.
$(B)/test/fake/%.so: test/fake/%.c $(B)/flags | $(first)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(cflags) -fPIC -shared $< -o $@

abi: $(patsubst %,$(B)/%.abi,$(abi_src)) ## Hold our declarations against the toolkit's cuda.h, when there is one.
	@$(if $(CUDA_HOME),echo "abi: held against $(CUDA_HOME)/include/cuda.h",echo "abi: no toolkit: skipped")

cuda_include = $(if $(CUDA_HOME),-isystem $(CUDA_HOME)/include)
$(B)/%.c.abi: %.c $(B)/flags $(B)/toolkit | $(first)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(cflags) -Itest $(cuda_include) -c $< -o $@

$(B)/%.cpp.abi: %.cpp $(B)/flags $(B)/toolkit | $(first)
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) -std=c++17 $(common) $(CXXFLAGS) -Itest $(cuda_include) -c $< -o $@

tool-check: $(tool) $(B)/test/tool/jobs ## Run the tool on good and bad input and look at its words and exit status.
	@test/tool/check.sh $(tool) $(B)/test/tool/jobs

# Its functions are in its dynamic symbols, so that stacks have names without libdw.
$(B)/test/tool/jobs: test/tool/jobs.c $(B)/flags $(static) | $(first)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(cflags) -rdynamic $(LDFLAGS) $< $(static) $(libs) -o $@

page-check: $(tool) ## Look at a report in headless Chromium (needs: make deps WITH='chromium nodejs npm').
	@test/page/run.sh $(abspath $(tool)) $(abspath build/page-check) $(or $(SNAPSHOTS),$(wildcard test/golden/*.pickle.gz))

# Programs whose output the documentation shows.
doc_bin := $(patsubst test/doc/%.c,$(B)/test/doc/%,$(wildcard test/doc/*.c))
$(doc_bin): $(B)/test/doc/%: $(B)/test/doc/%.o $(B)/test/support/shortage.o $(static)
	$(call say,LD)$(CC) $(cflags) $(LDFLAGS) $^ $(libs) -o $@

doc-check: $(doc_bin) $(tool) $(B)/test/tool/jobs ## Run the commands that the documentation shows; they must print what it says.
	@test/doc/check.sh $(B) $(wildcard doc/*.md)

check-install: $(static) $(shared) $(tool) ## Install into build/stage and build the README's program there.
	@MAKE='$(MAKE)' CC='$(CC)' V='$(V)' FLAGS='$(filter -f% --coverage,$(flags_$(V)))' VERSION='$(VERSION)' test/install/check.sh build/stage

snapshot-check: $(B)/test/gpu/history $(shared) ## Read our snapshots with Python (and PyTorch and node, where there).
	@mkdir -p build/snapshots
	@$< --sim --quick build/snapshots
	@if command -v python3 >/dev/null; then python3 test/gpu/memory_viz.py build/snapshots $(shared) --sim --quick; \
	else echo "snapshot-check: no python3: skipped"; fi

gpu-history: $(B)/test/gpu/history $(shared) ## Costs of history and snapshots on a GPU, and PyTorch's tools on them (ARGS=--sim).
	@mkdir -p build/snapshots
	@$< $(ARGS) build/snapshots
	@python3 test/gpu/memory_viz.py build/snapshots $(shared) $(ARGS)

# As much of PyTorch as the error library is built of.
standin := $(B)/test/adapter/pytorch
torch-check: torch $(B)/test/adapter/throw $(standin)/lib/libc10.so ## Try what PyTorch calls, and granary_torch.py, on the simulated device.
	@$(B)/test/adapter/throw
	@if [ $(V) != release ] && [ $(V) != debug ]; then echo "torch-check: Python cannot load a sanitizer: skipped"; exit 0; fi; \
	command -v '$(firstword $(PYTHON))' >/dev/null || { echo "torch-check: no $(or $(PYTHON),Python): skipped"; exit 0; }; \
	export MAKE='$(MAKE)' CXX='$(CXX)' PYTHONDONTWRITEBYTECODE=1; \
	$(PYTHON) test/adapter/check.py $(B) && { $(PYTHON) test/adapter/crossing.py $(B) || \
	    { test $$? = 77 && echo "torch-check: no PyTorch with its headers: whether exceptions cross it is skipped"; }; }

$(standin)/lib/libc10.so: test/adapter/c10.cpp test/adapter/include/c10/util/Exception.h $(B)/flags
	@mkdir -p $(@D)
	@ln -sfn $(abspath test/adapter/include) $(standin)/include
	$(call say,LD)$(CXX) -std=c++17 -Wall -Wextra -fPIC -shared -Itest/adapter/include -Wl,-soname,libc10.so $< -o $@

$(B)/test/adapter/throw: test/adapter/throw.cpp $(torch)
	@mkdir -p $(@D)
	$(call say,LD)$(CXX) -std=c++17 $(common) $(CXXFLAGS) $(LDFLAGS) $< $(torch) -Wl,-rpath,$(abspath $(B)) -o $@

gpu-torch: torch ## Jobs of PyTorch on granary and on its own allocator, on a GPU: the same results, and a table.
	@$(PYTHON) test/gpu/torch_jobs.py $(B)

# GPU programs do without Check: the machine may have a compiler and a driver and nothing else.
gpu-programs: $(gpu_bin)

gpu-check: $(gpu_bin) ## Build and run test/gpu on a real GPU (exit status 77 of a program: skipped).
	@failed=0; \
	for p in $(gpu_bin); do \
	    echo "== $${p##*/}"; $$p; rc=$$?; \
	    case $$rc in 0) ;; 77) echo "$${p##*/}: skipped, no GPU";; *) echo "$${p##*/}: FAILED ($$rc)"; failed=1;; esac; \
	done; exit $$failed

$(gpu_bin): $(B)/test/gpu/%: test/gpu/%.c $(B)/flags $(B)/toolkit $(static) | $(first)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(cflags) -Itest $(cuda_include) $(LDFLAGS) $< $(static) $(libs) -lm -o $@

# Host memory that unit tests lose is found by valgrind: looking for it here as well takes 100 s. Programs
# of one thread teach the thread sanitizer little.
asan ubsan tsan: ## Run unit, property and fault tests under a sanitizer.
	@$(MAKE) --no-print-directory V=$@ unit $(if $(filter asan,$@),ASAN_OPTIONS=detect_leaks=0)
	@$(MAKE) --no-print-directory V=$@ prop fault $(if $(filter tsan,$@),GRANARY_PROGRAMS=4000)

# In processes of their own, as usual: tests that die on purpose would take the others along. Test
# cases with the tag "large" are left out: they need more addresses, or more time, than valgrind has.
valgrind: valgrind-0 valgrind-1 ## Run the unit tests under valgrind.
valgrind-%: $(B)/test/unit/runner $(fakes)
	@$(run) CK_TIMEOUT_MULTIPLIER=40 CK_EXCLUDE_TAGS=large RUNNER_SHARD=$*/2 valgrind -q --suppressions=test/support/valgrind.supp --error-exitcode=1 \
	    --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite $<

cov: ## Run the tests with coverage; the table goes to build/cov/coverage.txt.
	@find build/cov -name '*.gcda' -delete 2>/dev/null || true
	@$(MAKE) --no-print-directory V=cov unit prop fault tool-check
	@cd build/cov && find src -name '*.gcda' | sort | xargs gcov -n 2>/dev/null | \
	    awk -f ../../test/lint/coverage.awk | tee coverage.txt

# ---- rules of the house -----------------------------------------------------------------------

lint: layers lint-size lint-ledger lint-options lint-mutants lint-manual lint-symbols format-check lint-cppcheck ## Check every rule of CONTRIBUTING.md that a program can check.

layers: ## Check that includes follow src/LAYERS.
	@awk -f test/lint/layers.awk src/LAYERS $(call files,src,%.c %.h %.def)

lint-size:
	@wc -l $(formatted) Makefile | awk '$$2 != "total" && $$1 > 600 {print $$2 ": " $$1 " lines, more than 600"; bad = 1} END {exit bad}'

# Ledger functions that tell nothing new, so that several places may call them.
LEDGER_READS := gr_ledger_init gr_ledger_reserved gr_ledger_read gr_ledger_check gr_ledger_settle gr_ledger_active \
                gr_ledger_stop gr_ledger_go gr_ledger_look gr_ledger_fini
lint-ledger:
	@awk -v reads='$(LEDGER_READS)' -f test/lint/ledger.awk $(filter-out src/ledger/% src/tool/%,$(call files,src,%.c %.h))

# Every key has a row in doc/options.md with a test that exists, and there is no other row.
lint-options:
	@$(option_records) | awk -v format=keys -f doc/options.awk | test/lint/options.sh doc/options.md $(call files,test,%.c)

lint-mutants: ## Every mutant fits the code that it is to break.
	@test/mutation/fit.sh

# sim.h uses no driver: it stands for one.
lint-manual: ## Every public function says what driver work it does, whether a capture allows it, how it fails.
	@awk -f test/lint/manual.awk $(filter-out %/sim.h,$(wildcard include/granary/*.h))

lint-symbols: $(shared)
	@test/lint/symbols.sh $(shared)

lint-cppcheck:
	@if command -v cppcheck >/dev/null; then \
	    cppcheck -q --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 \
	        --suppress=missingIncludeSystem -D_GNU_SOURCE -DGR_CHECK=1 -Iinclude -Isrc -j $$(nproc) src bench; \
	else echo "lint: no cppcheck: skipped"; fi

format: ## Format the sources.
	@$(CLANG_FORMAT) -i $(formatted)

format-check: ## Fail when a source file is not formatted.
	@$(CLANG_FORMAT) --dry-run -Werror $(formatted)

# ---- installing -------------------------------------------------------------------------------

# The .pc file is written here, not by `all`: only now is PREFIX known for certain.
install: all man ## Install headers, libraries, granary.pc, the tool and its pages (DESTDIR, PREFIX, LIBDIR, ...).
	$(INSTALL) -d $(DESTDIR)$(INCLUDEDIR)/granary $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(BINDIR) \
	    $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man7
	$(INSTALL) -m 644 include/granary/*.h $(DESTDIR)$(INCLUDEDIR)/granary
	$(INSTALL) -m 644 $(static) $(DESTDIR)$(LIBDIR)
	$(INSTALL) -m 755 $(shared) $(DESTDIR)$(LIBDIR)
	ln -sf libgranary.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libgranary.so.$(SOVERSION)
	ln -sf libgranary.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libgranary.so
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$(INCLUDEDIR)' '' \
	    'Name: granary' 'Description: expandable-segment allocator for GPU memory' 'Version: $(VERSION)' \
	    'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lgranary' 'Libs.private: -pthread $(libs)' \
	    > $(DESTDIR)$(LIBDIR)/pkgconfig/granary.pc
	$(INSTALL) -m 755 $(tool) $(DESTDIR)$(BINDIR)
	$(INSTALL) -m 644 doc/granary.1 $(DESTDIR)$(MANDIR)/man1
	$(INSTALL) -m 644 $(B)/granary-options.7 $(DESTDIR)$(MANDIR)/man7

# All in one folder, where granary_torch.py finds the rest. The error library is that of `make torch`: who installs may
# have another Python.
install-torch: $(torch) $(torch_files) $(if $(wildcard $(torch_error)),,torch) ## Install what PyTorch needs, into LIBDIR/granary.
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/granary
	$(INSTALL) -m 755 $(torch) $(DESTDIR)$(LIBDIR)/granary
	@if [ -e $(torch_error) ]; then $(INSTALL) -m 755 $(torch_error) $(DESTDIR)$(LIBDIR)/granary; fi
	$(INSTALL) -m 644 $(torch_files) $(DESTDIR)$(LIBDIR)/granary

uninstall: ## Remove what install and install-torch put there.
	rm -f $(patsubst include/%,$(DESTDIR)$(INCLUDEDIR)/%,$(wildcard include/granary/*.h)) \
	    $(addprefix $(DESTDIR)$(LIBDIR)/,libgranary.a libgranary.so libgranary.so.$(SOVERSION) libgranary.so.$(VERSION) pkgconfig/granary.pc \
	        $(patsubst $(B)/%,granary/%,$(torch) $(torch_error) $(torch_files))) \
	    $(DESTDIR)$(BINDIR)/granary $(DESTDIR)$(MANDIR)/man1/granary.1 $(DESTDIR)$(MANDIR)/man7/granary-options.7
	-@rmdir $(DESTDIR)$(INCLUDEDIR)/granary $(DESTDIR)$(LIBDIR)/granary $(DESTDIR)$(LIBDIR)/pkgconfig 2>/dev/null || true

dist: ## Pack the committed files into build/granary-VERSION.tar.gz.
	@mkdir -p build
	git archive --format=tar.gz --prefix=granary-$(VERSION)/ -o build/granary-$(VERSION).tar.gz HEAD

clean: ## Remove everything that was built.
	rm -rf build

help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z][a-z -]*:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo; echo "  V=release|debug|asan|ubsan|tsan|cov   CC=gcc|clang   WERROR=1   CUDA_HOME=DIR (empty: no toolkit)   LOUD=1   PYTHON=python3"

-include $(shell find $(B) -name '*.d' 2>/dev/null)
