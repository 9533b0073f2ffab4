#!/usr/bin/env bash
# Every MPI name that Debian's MPICH libraries export must be exported by ours too (all libraries together), or a
# program built against Debian's would not start with ours. Skipped (77) where Debian's are not installed.
set -euo pipefail
stage=${ULFM_STAGE:?the folder ULFM is installed in}

# Reads all of the list: whoever stops early ends ldconfig by a signal, now and then, and with it the test.
debian_library() { ldconfig -p | awk -v name="$1" '$1 == name && !found++ { print $NF }'; }

# The MPI names of the libraries given: C and C++ (MPI_, PMPI_, MPIX_, the C++ namespace MPI) and Fortran (mpi_..._).
mpi_names() {
    nm -D --defined-only "$@" 2>/dev/null | awk 'NF >= 3 && $2 ~ /^[TWBDRViu]$/ { sub(/@.*/, "", $3); print $3 }' |
        grep -E '^(P?MPIX?_|p?mpix?_[a-z0-9_]*_$|_ZT?[A-Z]*N?K?3MPI)' | sort -u
}

theirs=()
for name in libmpich libmpichfort libmpichcxx; do
    path=$(debian_library "$name.so.12")
    [[ -n $path ]] || { echo "skipped: no $name.so.12 on this machine" && exit 77; }
    [[ -e $stage/lib/$name.so.12 ]] || { echo "missing: $stage/lib/$name.so.12" && exit 1; }
    theirs+=("$path")
done

expected=$(mpi_names "${theirs[@]}")
missing=$(comm -23 <(echo "$expected") <(mpi_names "$stage"/lib/libmpi{,fort,cxx}.so.12))
# An empty list of names would make the comparison pass for the wrong reason.
[[ $(wc -l <<<"$expected") -gt 1000 ]] || { echo "only $(wc -l <<<"$expected") names found in ${theirs[*]}" && exit 1; }
if [[ -n $missing ]]; then
    printf 'exported by Debian, missing here (%d):\n%s\n' "$(wc -l <<<"$missing")" "$missing"
    exit 1
fi
echo "all $(wc -l <<<"$expected") names are exported"
