#!/usr/bin/env bash
# The NX/2 examples compile with nxcc and nxf77 and are right on 1 to 32 nodes; the NX program and its MPI twin print
# the same; the wrappers work after the installation was moved.
set -uo pipefail
# shellcheck source=nx2_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/nx2_common.bash"
"$ULFM_SOURCE/examples/nx2/build" "$scratch/bin" >log 2>&1 || { cat log && exit 1; }

suffixes=('')
[[ -x bin/ring_f ]] && suffixes+=(_f)
for n in 1 2 3 4 7 9 16 32; do
    for f in "${suffixes[@]}"; do
        for program in ring broadcast matmul; do
            ran "$program$f, $n nodes" 0 ': ok$' "$stage/bin/ulfmrun" -n "$n" "bin/$program$f"
        done
        ran "hostpi$f, $n nodes" 0 ': ok$' "$stage/bin/nxhost" -n "$n" "bin/hostpi$f" "bin/nodepi$f"
    done
done
programs=(cg farm)
[[ -x bin/fft2d_f ]] && programs+=(fft2d_f)
for n in 1 2 3 8 16; do
    for program in "${programs[@]}"; do
        ran "$program, $n nodes" 0 ': ok$' "$stage/bin/ulfmrun" -n "$n" "bin/$program"
    done
done
# Over switches, and over the network of the machine.
for program in "${programs[@]}"; do
    ran "$program, 8 nodes, xswitch" 0 ': ok$' \
        "$stage/bin/ulfmrun" --transport xswitch --topology mesh:4x2 -n 8 "bin/$program"
    ran "$program, 8 nodes, dcm" 0 ': ok$' \
        "$stage/bin/ulfmrun" --transport dcm --topology cube:3 -n 8 "bin/$program"
done
ran 'the nodes named on the command line' 0 '^pi: 3 nodes.*: ok$' \
    "$stage/bin/nxhost" bin/hostpi nodepi : -n 3 bin/nodepi

# The twins: the same line, but for the time.
"$stage/bin/mpicc" -O2 "$ULFM_SOURCE/examples/mpi/pi.c" -o pi_mpi -lm || exit 1
for n in 1 3 4; do
    nx=$("$stage/bin/ulfmrun" -n $n bin/pi 100003 </dev/null | sed 's/, time.*//')
    mpi=$("$stage/bin/ulfmrun" -n $n ./pi_mpi 100003 </dev/null | sed 's/, time.*//')
    if [[ -n $nx && $nx == "$mpi" ]]; then
        echo "ok   twins, $n nodes: $nx"
    else
        printf 'FAIL twins, %d nodes:\n     | %s\n     | %s\n' $n "$nx" "$mpi"
        failures=$((failures + 1))
    fi
done

# A copy of what a program needs, elsewhere; the wrappers of the copy must use the copy, and take options of old.
mkdir -p moved/bin moved/lib moved/include
cp -a "$stage"/bin/nx* moved/bin/
cp -a "$stage"/lib/lib{nx2,ulfm}.so* moved/lib/
cp -a "$stage/include/nx2" moved/include/
moved=$(realpath moved)
moved/bin/nxcc -std=gnu89 -w -vec -vx -Knoieee "$ULFM_SOURCE/examples/nx2/ring.c" -o ring_moved -node -lvec || exit 1
ran 'moved: runs' 0 '^ring: 1 nodes.*ok$' ./ring_moved
libraries=$(ldd ring_moved)
grep -qF " $moved/lib/libnx2.so" <<<"$libraries" || { echo "FAIL moved: $libraries" && failures=$((failures + 1)); }
if ldd ring_moved "$moved/lib/libnx2.so" | grep -q 'libmpi'; then
    echo "FAIL there is MPI inside" && failures=$((failures + 1))
fi
# Compiling alone and linking alone; everything else is passed on.
moved/bin/nxcc -std=gnu89 -w -c "$ULFM_SOURCE/examples/nx2/pi.c" -o pi.o && moved/bin/nxcc pi.o -o pi_two || exit 1
ran 'compiled and linked apart' 0 '^pi: 3.14' ./pi_two 1000
ran 'options are passed on' 0 'NX_TEST_MACRO' moved/bin/nxcc -DNX_TEST_MACRO=1 -E -dM "$ULFM_SOURCE/examples/nx2/pi.c"
ran 'show' 0 "-I$moved/include/nx2 .*-lnx2" moved/bin/nxcc -show x.c
if [[ -x bin/ring_f ]]; then
    moved/bin/nxf77 "$ULFM_SOURCE/examples/nx2/ring.f" -o ring_f_moved -node -vec || exit 1
    ran 'moved: runs, Fortran' 0 '^ring: 1 nodes.*ok$' ./ring_f_moved
    ran 'INTEGER*8 is refused' 2 'INTEGER\*4 only' moved/bin/nxf77 -fdefault-integer-8 x.f
fi

# Everything in the table has its four names.
exported=$(nm -D --defined-only "$stage/lib/libnx2.so" | awk '{ print $3 }')
for name in $(python3 "$ULFM_SOURCE/nx2compat/faces.py" "$ULFM_SOURCE/nx2compat/calls.table" names); do
    for symbol in "$name" "_$name" "${name}_" "_${name}_"; do
        grep -qx -- "$symbol" <<<"$exported" || { echo "FAIL no $symbol" && failures=$((failures + 1)); }
    done
done
finish
