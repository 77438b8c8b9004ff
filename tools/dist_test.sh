#!/usr/bin/env bash
# tools/dist_test.sh CONFIG CHECKPOINT PROCESSES [OPTIONS OF tools/test.py]
# Several machines, on each: NNODES=2 NODE_RANK=0 MASTER_ADDR=HOST PORT=29500
# Without a GPU, the processes run on the CPU (gloo).
set -e

[ $# -ge 3 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }

"${PYTHON:-python}" -m torch.distributed.run \
    --nnodes="${NNODES:-1}" \
    --node_rank="${NODE_RANK:-0}" \
    --master_addr="${MASTER_ADDR:-127.0.0.1}" \
    --master_port="${PORT:-29500}" \
    --nproc_per_node="$3" \
    "$(dirname "$0")/test.py" "$1" "$2" --launcher pytorch "${@:4}"
