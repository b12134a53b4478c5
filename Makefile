# Entry points of a checkout. `make demo` and `make test` fetch and build what they need; run them as root on Debian 12.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test bench lint sanity unit testbed simulated molecule e2e

include tests/testbed/testbed.mk

help: ## Say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /|/' | column -t -s '|'

demo: ## Three simulated GPU machines, a real Kubernetes, `ansible-playbook site.yml` and a pod with a GPU
	@tests/demo.sh

test: ## Every check there is; ends with "N passed, N failed"
	@tests/run.sh

bench: ## What the MIG planner and mig_layout cost and disturb, as counts and ratios
	@tests/bench/run.sh

lint sanity unit testbed simulated molecule e2e: ## One part of `make test`
	@tests/run.sh $@
