# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# The testbed's targets; README.md beside this file describes them.
TESTBED_SH := $(dir $(lastword $(MAKEFILE_LIST)))testbed.sh

.PHONY: testbed-up testbed-down testbed-env testbed-shell testbed-restart testbed-recreate

testbed-up: ## start what is missing of the testbed (TESTBED=file: other nodes)
	@$(TESTBED_SH) up

testbed-down: ## remove the testbed, but not what was built for it
	@$(TESTBED_SH) down

testbed-env: ## print the settings to work with the testbed: eval "$(make -s testbed-env)"
	@$(TESTBED_SH) env

testbed-shell: ## open a shell on a node (NODE=gpu-a)
	@$(TESTBED_SH) shell $(NODE)

testbed-restart: ## reboot a node (NODE=gpu-a)
	@$(TESTBED_SH) restart $(NODE)

testbed-recreate: ## replace a node by a freshly installed one (NODE=gpu-a)
	@$(TESTBED_SH) recreate $(NODE)
