#!/usr/bin/env bash
# The whole chain on one machine: three bare hosts, a real Kubernetes, site.yml, a pod with a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '\n\033[1m==> %s\033[0m\n' "$*"; }

say "Bringing the testbed up (a control plane, two machines with simulated GPUs, one without)"
make -s testbed-up
eval "$(make -s testbed-env)"

say "ansible-playbook site.yml"
ansible-playbook site.yml

say "A pod that asks for nvidia.com/gpu: 1"
kubectl delete pod vectoradd --ignore-not-found --now
kubectl apply -f examples/vectoradd.yml
kubectl wait pod vectoradd --for=jsonpath='{.status.phase}'=Succeeded --timeout=120s ||
  { kubectl describe pod vectoradd; kubectl logs vectoradd; exit 1; }
kubectl logs vectoradd

say "What the nodes advertise"
kubectl get nodes -o 'custom-columns=NODE:.metadata.name,GPUS:.status.allocatable.nvidia\.com/gpu,RUNTIME:.status.nodeInfo.containerRuntimeVersion'

say "Left running. Use it with:   eval \"\$(make -s testbed-env)\"   then kubectl, ansible-playbook site.yml"
echo "    A node's shell:          make testbed-shell NODE=gpu-a"
echo "    Remove all of it:        make testbed-down"
