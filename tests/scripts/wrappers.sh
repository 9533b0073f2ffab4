#!/usr/bin/env bash
# The staged compiler wrappers work from where they stand, also after the stage was moved, and what they build finds
# its libraries without LD_LIBRARY_PATH; the two names of a library are one file.
set -euo pipefail
stage=${ULFM_STAGE:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH

cat >"$work/hello.c" <<'EOF'
#include <mpi.h>
#include <stdio.h>
int main(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    return MPI_Get_library_version(text, &length) || puts(text) < 0;
}
EOF
printf 'program hello\n use mpi\n integer :: e, l\n character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: t\n call MPI_Get_library_version(t, l, e)\n print *, t(1:l)\nend program\n' >"$work/hello.f90"
cp "$work/hello.c" "$work/hello.cpp"

uses_only() { # PROGRAM PREFIX: its MPI libraries must come from PREFIX
    local libraries # not a pipe: grep -q would end ldd early, which pipefail takes for a failure
    libraries=$(ldd "$1")
    if grep -E 'libmpi' <<<"$libraries" | grep -vF " $2/lib/"; then
        echo "$1 takes the libraries above from elsewhere than $2/lib" && exit 1
    fi
    grep -qF " $2/lib/libmpi" <<<"$libraries" || { echo "$1 is not linked with MPI" && exit 1; }
}

check() {
    local prefix=$1 out=$work/out
    "$prefix/bin/mpicc" "$work/hello.c" -o "$out.c"
    "$prefix/bin/mpicxx" "$work/hello.cpp" -o "$out.cpp"
    "$prefix/bin/mpifort" "$work/hello.f90" -o "$out.f90"
    for program in "$out".{c,cpp,f90}; do uses_only "$program" "$prefix"; done
    grep -q '^ *MPICH Version' <<<"$("$out.c")" || { echo "no library version from $out.c" && exit 1; }
    "$out.f90" >/dev/null
    PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --libs mpich >"$work/libs"
    grep -qE '^-L\S+/lib' "$work/libs" || exit 1
}

check "$stage"
cp -a "$stage" "$work/moved stage" && mv "$work/moved stage" "$work/moved"
check "$work/moved"
for pair in mpich:mpi mpichfort:mpifort mpichcxx:mpicxx; do
    [[ $stage/lib/lib${pair%:*}.so.12 -ef $stage/lib/lib${pair#*:}.so.12 ]] || { echo "$pair: two files" && exit 1; }
done
echo "the wrappers work in place and moved"
