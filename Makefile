# Thin: each target is one script or one cmake preset; all of it works without make too.
# SPDX-License-Identifier: Apache-2.0
.PHONY: help demo test bench bench-peers format soak clean

help:
	@echo "make demo    install what is missing, build, record a service under load, diagnose, serve the page"
	@echo "             (DEMO_SERVE=0 stops after the diagnosis)"
	@echo "make test    install what is missing, build, run every test (also sanitizers, clang, fuzz)"
	@echo "make bench   print the table of ratios and write build/release/bench.json"
	@echo "make bench-peers  the same work on LTTng-UST, the Rust original (needs cargo) and profilers; end to end"
	@echo "make soak    the survival test in its long form: 300 kills of each kind"
	@echo "make format  format the C++ sources"

demo:
	@tools/bootstrap demo
	@tools/build demo
	@examples/checkout/demo build/demo

test:
	@tools/run_tests

soak:
	@tools/bootstrap test
	@tools/build release recording_child survival_test
	@DIAL9_SURVIVAL_KILLS=300 ctest --test-dir build/release -L survival --timeout 7200 --output-on-failure

bench:
	@tools/bootstrap bench
	@tools/build release benchmarks
	@bench/run build/release

bench-peers:
	@tools/bootstrap peers
	@tools/build release
	@bench/peers/run build/release
	@bench/peers/profilers build/release
	@bench/peers/end_to_end build/release

format:
	@git ls-files '*.h' '*.cc' | xargs clang-format-19 -i

clean:
	rm -rf build web/dist
