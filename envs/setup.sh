#!/usr/bin/env bash
# Sets up the environments named as arguments (workflow, engine, dev, peers) under .envs/, from the hashed locks beside
# this file. Running it again does nothing when nothing changed. ENGINE=cuda takes the locks for NVIDIA cards; `slurm`
# adds the SLURM executor to the workflow environment.
set -euo pipefail
cd "$(dirname "$0")/.."
ENGINE=${ENGINE:-cpu}
PYTHON=${PYTHON:-}

say() { printf 'set-up: %s\n' "$*"; }
die() { printf 'set-up: error: %s\n' "$*" >&2; exit 1; }

if [ -z "$PYTHON" ]; then
  for candidate in python3.11 python3 python3.12 python3.13; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then PYTHON=$candidate; break; fi
  done
fi
[ -n "$PYTHON" ] || die "no Python 3.11 or newer was found; set PYTHON=/path/to/python3.11"

# uv does not read pip's configuration: hand over what a site has told pip (mirrors, folders of wheels).
pip_setting() { "$PYTHON" -m pip config get "global.$1" 2>/dev/null || true; }
export UV_FIND_LINKS=${UV_FIND_LINKS:-${PIP_FIND_LINKS:-$(pip_setting find-links)}}
export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-$(pip_setting index-url)}}
export UV_INDEX=${UV_INDEX:-${PIP_EXTRA_INDEX_URL:-}}
for name in UV_FIND_LINKS UV_DEFAULT_INDEX UV_INDEX; do [ -n "${!name}" ] || unset "$name"; done
# Every file is checked against a hash, so it does not matter which index offers it.
export UV_INDEX_STRATEGY=unsafe-best-match UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=${UV_LINK_MODE:-hardlink}

UV=.envs/uv/bin/uv
digest() { sha256sum "$@" | sha256sum | cut -c1-64; }

if [ "$(cat .envs/uv/.digest 2>/dev/null)" != "$(digest envs/uv.lock)" ]; then
  say "uv (the installer) into .envs/uv"
  rm -rf .envs/uv && "$PYTHON" -m venv .envs/uv
  .envs/uv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r envs/uv.lock
  digest envs/uv.lock > .envs/uv/.digest
fi

install() { # environment, lock
  local env=.envs/$1 lock=envs/$2.lock want
  want=$(digest "$lock" pyproject.toml)
  if [ "$(cat "$env/userturn.digest" 2>/dev/null)" = "$want" ]; then say "$1: up to date ($lock)"; return; fi
  say "$1: installing $(grep -c '^[a-zA-Z]' "$lock") packages of $lock into $env"
  local start=$SECONDS
  [ -x "$env/bin/python" ] || "$UV" venv -q --python "$PYTHON" "$env"
  rm -f "$env/userturn.digest"
  "$UV" pip sync -q --python "$env" --require-hashes "$lock" || die "could not install $lock (see above)$3"
  "$UV" pip install -q --python "$env" --no-deps --no-build-isolation --editable .
  # what the workflow compares with the lock as it is now, before it runs anything
  echo "$2.lock $(sha256sum "$lock" | cut -c1-64)" > "$env/userturn.lock"
  echo "$want" > "$env/userturn.digest"
  say "$1: ready after $((SECONDS - start)) s"
}

for name in "$@"; do
  case $name in
    slurm)
      install workflow workflow ""
      say "workflow: adding the SLURM executor (envs/slurm.lock)"
      "$UV" pip install -q --python .envs/workflow --require-hashes -r envs/slurm.lock
      ;;
    workflow | dev | peers) install "$name" "$name" "" ;;
    engine)
      version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
      [ "$version" = 3.11 ] || die "the engine's lock is for Python 3.11, $PYTHON is $version; set PYTHON=/path/to/python3.11 (or lock anew with envs/lock.sh)"
      install engine "engine-$ENGINE" "; PyTorch's CPU build comes from PyTorch's own wheel index: see 'Installing' in the README" ;;
    *) die "unknown environment '$name'; known: workflow, engine, dev, peers, slurm" ;;
  esac
done
