#!/usr/bin/env bash
# A project outside the tree builds against the installed library, with CMake and with pkg-config, from where it was
# installed and from a copy that was moved.
set -euo pipefail
stage=${ULFM_STAGE:?} source=${ULFM_SOURCE:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(<"$source/VERSION")
cp -r "$source/tests/consumer" "$work/consumer"

expect_version() {
    local said
    said=$("$@")
    [[ $said == "$version" ]] || { echo "$* says '$said', expected '$version'" && exit 1; }
}

with_cmake() {
    if ! { cmake -S "$work/consumer" -B "$2" -Dulfm_DIR="$1/lib/cmake/ulfm" && cmake --build "$2"; } >"$work/log" 2>&1; then
        cat "$work/log"
        exit 1
    fi
    expect_version "$2/consumer"
    expect_version "$2/consumer_c"
}

with_pkgconfig() {
    local flags
    read -ra flags < <(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --cflags --libs ulfm)
    cc "$work/consumer/main.c" -o "$2" "${flags[@]}"
    LD_LIBRARY_PATH=$1/lib expect_version "$2"
}

# Only what belongs to libulfm is copied; MPICH's part of the stage has its own tests.
mkdir -p "$work/moved/lib/pkgconfig" "$work/moved/lib/cmake" "$work/moved/include"
cp -a "$stage"/lib/libulfm.so* "$work/moved/lib/"
cp -a "$stage/lib/cmake/ulfm" "$work/moved/lib/cmake/"
cp -a "$stage/lib/pkgconfig/ulfm.pc" "$work/moved/lib/pkgconfig/"
cp -a "$stage/include/ulfm" "$work/moved/include/"

for prefix in "$stage" "$work/moved"; do
    with_cmake "$prefix" "$work/build.$(basename "$prefix")"
    with_pkgconfig "$prefix" "$work/plain.$(basename "$prefix")"
done
echo "both ways of using the installed library work"
