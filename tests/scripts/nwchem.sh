#!/usr/bin/env bash
# Debian's prebuilt NWChem (MPICH build: Global Arrays over ARMCI-MPI's windows) runs unmodified over ULFM; its energies are
# the known ones, with ARMCI's default windows too, which go wrong over Debian's MPICH 4.0.2 (README.Debian of nwchem-mpich).
set -uo pipefail
command -v nwchem.mpich >/dev/null || {
    echo "no nwchem.mpich (Debian package nwchem-mpich)"
    exit 77
}
# shellcheck disable=SC2034 # of fabric_common.bash
patience=240
. "$(dirname "${BASH_SOURCE[0]}")/fabric_common.bash"
export OMP_NUM_THREADS=1
printf '%s\n' 'start h2o' 'memory 200 mb' 'geometry units angstroms' ' O 0.0 0.0 0.1' ' H 0.0 0.76 -0.48' \
    ' H 0.0 -0.76 -0.48' end basis ' * library 6-31g*' end scf ' thresh 1e-8' end 'task mp2 energy' >h2o.nw

check() { # OPTIONS...
    rm -f h2o.[!n]* out err
    over "$*" 'Total SCF energy = *-76\.0105874' "$@" nwchem.mpich h2o.nw
    grep -q 'Total MP2 energy' out || fail "$*" "no MP2 energy"
}

check -n 2
check -n 4
check -n 3 --transport xswitch --topology th8
check -n 2 --transport tcp
exit $((failures > 0))
