#!/usr/bin/env bash
# Writes the lock files anew from the .in files: hashed, and naming no index. Needs .envs/uv (make setup).
set -euo pipefail
cd "$(dirname "$0")"
export UV_FIND_LINKS=${UV_FIND_LINKS:-${PIP_FIND_LINKS:-$(python3 -m pip config get global.find-links 2>/dev/null || true)}}
[ -n "$UV_FIND_LINKS" ] || unset UV_FIND_LINKS
compile() { ../.envs/uv/bin/uv pip compile -q --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header "$@"; }
compile --universal uv.in -o uv.lock
compile --universal workflow.in -o workflow.lock
compile --universal dev.in -c workflow.lock -o dev.lock
compile --universal peers.in -o peers.lock
compile --universal slurm.in -c workflow.lock -o slurm.lock
# torchvision breaks vLLM's import beside the CPU build of PyTorch, and triton (1 GB) is not used on CPUs
compile --no-emit-package torchvision --no-emit-package torchaudio --no-emit-package torchcodec --no-emit-package triton \
  engine-cpu.in -o engine-cpu.lock
compile --python-platform x86_64-manylinux_2_28 engine-cuda.in -o engine-cuda.lock
