#!/bin/sh
# The calculations of `make demo`: tools/demo.sh CUANTO PYTHON, from the root of a checkout.
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

show "1. Water with B3LYP and density fitting, and an HTML report" \
  energy $molecules/water.xyz -m b3lyp -b def2-svp --json demo.json --report demo.html
show "2. Krypton with four components: spin-orbit coupling splits its p and d shells" \
  atom --element Kr
show "3. Benzene with PM6" \
  energy $molecules/benzene.xyz -m pm6
title "4. 125 waters with PM6, with and without full diagonalisation"
printf '$ python examples/05_pm6_cluster.py 5\n'
"$python" examples/05_pm6_cluster.py 5
printf '\nOpen demo.html in a browser to rotate the molecule and view its orbitals. Next: README.md, examples/, docs/.\n'
