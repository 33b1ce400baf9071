#!/usr/bin/env bash
# On a machine with a GPU and without a network: tests marked gpu, benchmarks, kernels under compute-sanitizer.
#
#   tools/gpu_check.sh                      tests, sanitize and every benchmark
#   tools/gpu_check.sh tests scf dft        some of the PARTS below, in this order
#   JOBS=4 tools/gpu_check.sh tests         number of test processes, 14 by default
#   TESTS='tests/[a-h]*/test_*.py' tools/gpu_check.sh tests     a part of the test files
#
# Parts core_potentials and x2c need more basis sets: where basis-set-exchange is not installed, bring the folder build/basis
# of a machine on which `python tools/export_bases.py` has written it.
#
# Results under $OUT (default: build/): gpu_check.log, and results.tar.gz with one JSON file per benchmark, named like the
# record in benchmarks/results if there is one; partial records of interrupted benchmarks stay in $OUT. On an H200 with 16 cores tests take
# about 350 s, first_minute and core_potentials 90 to 130, elements 40 (JOBS processes), x2c 230, large 110.
set -uo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-build}
JOBS=${JOBS:-14}
mkdir -p "$OUT"
PARTS=(tests sanitize integrals first_call direct scf sizes thesis dft gradient atoms semiempirical pseudodiagonalisation
  first_minute first_steps core_potentials x2c elements memory large)
wanted=("$@")
[ ${#wanted[@]} -gt 0 ] || wanted=("${PARTS[@]}")
for part in "${wanted[@]}"; do
  if [[ " ${PARTS[*]} " != *" $part "* ]]; then
    echo "unknown part '$part': choose from ${PARTS[*]}" >&2
    exit 2
  fi
done
folder=$(mktemp -d)
export PYTHONPATH=src PYTHONUNBUFFERED=1 CUANTO_BASIS_PATH=$PWD/tests/data/basis:$PWD/build/basis
status=0

bench() { # the name of the record, then the command
  local name=$1 code
  shift
  python3 "$@" --json "$OUT/$name.json"
  code=$?
  [ ! -f "$OUT/$name.json" ] || mv "$OUT/$name.json" "$folder"
  return $code
}

update() { # the same for benchmarks that replace some rows of the record
  local latest=$folder/$1.json
  [ -f "$latest" ] || latest=benchmarks/results/$1.json
  cp "$latest" "$OUT/$1.json" && bench "$@"
}

rows() { # the same for independent calculations that are not timed: JOBS processes
  OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 bench "$@" --workers "$JOBS"
}

run_part() {
  case $1 in
    tests)
      # Only files with GPU tests, their own or through a module of the tests: others may need packages that are absent.
      local helpers files
      helpers=$(grep -lE 'mark\.gpu' tests/support/*.py | xargs -n 1 basename -s .py | paste -sd '|' -)
      files=$(grep -lE "mark\.gpu|^from (${helpers}) import|^import (${helpers})\$" ${TESTS:-tests/*/test_*.py})
      local workers=()
      if python3 -c 'import xdist' 2>/dev/null; then workers=(-n "$JOBS"); fi
      # Every result is written at once, so that a time limit does not hide which tests failed.
      # shellcheck disable=SC2086
      OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python3 -m pytest -v -m gpu -p no:cacheprovider -p no:benchmark --durations=15 --junitxml="$OUT/gpu_tests.xml" "${workers[@]}" $files >"$OUT/gpu_tests.log" 2>&1
      local code=$?
      grep -v PASSED "$OUT/gpu_tests.log"
      return $code
      ;;
    sanitize)
      compute-sanitizer --tool memcheck --error-exitcode 9 --print-limit 20 python3 tools/run_kernels.py
      ;;
    integrals)
      bench three_centre_gpu benchmarks/three_centre.py --backend cuda --classes --no-peer &&
        bench mcmurchie_davidson_cuda benchmarks/mcmurchie_davidson.py --backend cuda
      ;;
    first_call) bench first_call_gpu benchmarks/first_call.py --backend cuda ;;
    direct) bench direct_jk_cuda benchmarks/direct_jk.py --backend cuda --no-peer ;;
    scf) bench scf_cuda benchmarks/scf.py --backend cuda ;;
    sizes)
      bench scf_alkanes_cuda benchmarks/scf.py --backend cuda --scan alkanes --limit 20 &&
        bench scf_waters_cuda benchmarks/scf.py --backend cuda --scan waters --limit 20
      ;;
    thesis) bench scf_thesis_cuda benchmarks/scf.py --backend cuda --thesis ;;
    dft) bench dft_cuda benchmarks/dft.py --backend cuda ;;
    gradient)
      rows gradient_references_cuda tools/compare_gradients.py --backend cuda &&
        bench gradient_cuda benchmarks/gradient.py --backend cuda
      ;;
    atoms) bench atoms_h200 benchmarks/atoms.py --backend cuda ;;
    semiempirical) bench semiempirical_cuda benchmarks/semiempirical.py --backend cuda --mopac --batch 1000 ;;
    first_minute)
      bench first_minute_h200 benchmarks/first_minute.py methane caffeine ribavirin naphthalene gradient taxol \
        --first-only bromomethane sulfur-dioxide --plain
      ;;
    first_steps) bench first_steps_h200 benchmarks/first_minute.py methane caffeine ribavirin ;;
    core_potentials)
      rows core_potential_references_cuda tools/compare_gradients.py --set core_potential --backend cuda &&
        bench ecp_cuda benchmarks/ecp.py --backend cuda
      ;;
    x2c) rows x2c_cuda tools/compare_x2c.py --backend cuda ;;
    elements)
      rows semiempirical_elements_h200 tools/compare_semiempirical.py --elements --backend cuda --no-differences
      ;;
    memory) update gpu_memory_h200 benchmarks/gpu_memory.py ;;
    large)
      update gpu_memory_h200 benchmarks/gpu_memory.py --large valinomycin &&
        update gpu_memory_h200 benchmarks/gpu_memory.py --large water_128
      ;;
    pseudodiagonalisation)
      bench pseudodiagonalisation_cuda benchmarks/pseudodiagonalisation.py --backend cuda --orbitals 2000 4000 8000 11600
      ;;
  esac
}

for part in "${wanted[@]}"; do
  begin=$SECONDS
  echo "==== $part"
  run_part "$part"
  code=$?
  echo "==== $part: status $code after $((SECONDS - begin)) s"
  [ $code -eq 0 ] || status=1
  tar -czf "$OUT/results.tar.gz" -C "$folder" .
done > >(tee "$OUT/gpu_check.log") 2>&1
wait
exit $status
