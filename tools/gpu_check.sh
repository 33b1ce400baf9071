#!/usr/bin/env bash
# On a machine with a GPU and without a network: tests marked gpu, then benchmarks; results under $OUT (default: build/).
set -uo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-build}
mkdir -p "$OUT"
export PYTHONPATH=src PYTHONUNBUFFERED=1 CUANTO_BASIS_PATH=$PWD/tests/data/basis
status=0
# Only the files with GPU tests: others may need packages (PySCF, the Basis Set Exchange) that are not there.
python3 -m pytest -q -m gpu -p no:cacheprovider $(grep -lE 'mark\.gpu|import.* bundle|from bundle' tests/test_*.py) 2>&1 \
  | tee "$OUT/pytest.log" || status=1
for benchmark in mcmurchie_davidson direct_jk; do
  python3 benchmarks/$benchmark.py --backend cuda --json "$OUT/${benchmark}_cuda.json" 2>&1 | tee "$OUT/$benchmark.log" \
    || status=1
done
python3 benchmarks/first_call.py --backend cuda --json "$OUT/first_call_gpu.json" 2>&1 || status=1
python3 benchmarks/three_centre.py --backend cuda --classes --json "$OUT/three_centre_gpu.json" 2>&1 \
  | tee "$OUT/three_centre.log" || status=1
exit $status
