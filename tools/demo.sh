#!/bin/sh
# What `make demo` shows: tools/demo.sh CUANTO PYTHON, from the root of a checkout.
set -eu
cuanto=$1
python=$2
molecules=src/cuanto/data/molecules

title() {
  if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$1"; else printf '\n%s\n' "$1"; fi
}

show() {
  title "$1"
  shift
  printf '$ cuanto %s\n' "$*"
  "$cuanto" "$@"
}

show "1. Water by B3LYP, Coulomb and exchange fitted; and a page of it" \
  energy $molecules/water.xyz -m b3lyp -b def2-svp --json demo.json --report demo.html
show "2. Krypton with four components: relativity splits its p and d shells" \
  atom --element Kr
show "3. Benzene by PM6" \
  energy $molecules/benzene.xyz -m pm6
title "4. 125 waters by PM6, with full diagonalisation and without"
printf '$ python examples/05_pm6_cluster.py 5\n'
"$python" examples/05_pm6_cluster.py 5
printf '\nOpen demo.html in a browser: turn the molecule, look at its orbitals. Next: README.md, examples/, docs/.\n'
