#!/usr/bin/env bash
# tools/slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [OPTIONS OF test.py]
# Variables: GPUS=8 (total) GPUS_PER_NODE=8 CPUS_PER_TASK=5 SRUN_ARGS=OPTIONS
set -e

[ $# -ge 4 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }

gpus=${GPUS:-8}
gpus_per_node=${GPUS_PER_NODE:-$((gpus < 8 ? gpus : 8))}

# SRUN_ARGS is a list of words
srun --partition="$1" \
    --job-name="$2" \
    --gres=gpu:"$gpus_per_node" \
    --ntasks="$gpus" \
    --ntasks-per-node="$gpus_per_node" \
    --cpus-per-task="${CPUS_PER_TASK:-5}" \
    --kill-on-bad-exit=1 \
    ${SRUN_ARGS:-} \
    "${PYTHON:-python}" -u "$(dirname "$0")/test.py" "$3" "$4" \
    --launcher=slurm "${@:5}"
