#!/bin/sh
# Writes requirements/tested.txt, locked.txt (the same versions with hashes) and
# oldest.txt from pyproject.toml. Before committing them, run the whole test suite on both: make test-all, and
# make test-oldest with Python 3.10. Needs uv (pip install uv).
set -eu
cd "$(dirname "$0")/../.."

compile() { # OUT OPTIONS...
    out=requirements/$1
    shift
    uv pip compile -q --no-header --no-annotate \
        --no-emit-package pip "$@" pyproject.toml -o "$out.part"
    echo "# Written by tools/dev/write_constraints.sh: $about" >"$out"
    grep -Ev "$skipped" "$out.part" >>"$out"
    rm "$out.part"
}

# the forks of OpenMMLab; oldest.txt has upstream, which has the same files
tested='--extra dev --extra onedl'
# torch pins the CUDA libraries of each of its builds
skipped='^(nvidia|cuda|triton)'
about='the versions of make install, on any platform'
# newer ones are tried by make test-latest
printf '%s\n' 'torch<=2.14.1' 'torchvision<=0.29.1' |
    compile tested.txt --universal --python-version 3.10 $tested \
        --constraint /dev/stdin
about='the lower bounds of pyproject.toml, of make test-oldest'
compile oldest.txt --resolution lowest-direct --python-version 3.10 \
    --extra test --extra openmmlab
skipped='^$' # hashes are needed for all
about='tested.txt with hashes, of make install LOCKED=1'
compile locked.txt --universal --python-version 3.10 $tested \
    --generate-hashes \
    --constraint requirements/tested.txt
