# Shared by build and stage: where things are kept, and which key names a finished MPICH. Sourced, not run, by
# scripts that have set quiet and stock.
# shellcheck shell=bash disable=SC2034,SC2054,SC2154

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ulfm

# MPICH is configured for a prefix that never exists: what is installed is made relocatable instead.
placeholder=/opt/ulfm

say() { ((quiet)) || printf '%s\n' "mpich: $*" >&2; }
die() {
    printf '%s\n' "mpich: $*" >&2
    exit 1
}

# Sets tarball: the one named by ULFM_MPICH_SOURCE, or else the newest that apt fetched before (maybe none).
find_tarball() {
    if [[ -n ${ULFM_MPICH_SOURCE:-} ]]; then
        tarball=$ULFM_MPICH_SOURCE
        [[ -f $tarball ]] || die "ULFM_MPICH_SOURCE: no such file: $tarball"
        [[ $tarball =~ mpich[-_]4\.[^/]*\.tar\.(gz|xz|bz2)$ ]] ||
            die "ULFM_MPICH_SOURCE must name a release tarball mpich-4.x.tar.gz (or .xz, .bz2), not $tarball"
    else
        tarball=$(compgen -G "$cache/downloads/mpich_4*.orig.tar.*" | grep -v '\.asc$' | sort -V | tail -n 1 || true)
    fi
}

# The release a tarball's name tells: mpich_4.0.2.orig.tar.xz and mpich-4.0.2.tar.gz give 4.0.2.
mpich_version() { basename "$tarball" | sed -E 's/^mpich[-_]//; s/(\.orig)?\.tar\..*$//'; }

# Only major.minor: a patch release of ULFM must not cost a rebuild of MPICH.
ulfm_version() { cut -d. -f1,2 "$top/VERSION"; }

configure_options() {
    local device=ch3:nemesis:ulfm,tcp name
    name="ULFM $(ulfm_version) (user-level fast message)"
    if ((stock)); then
        device=ch3:nemesis
        name="stock, for comparison with ULFM"
    fi
    options=(
        --prefix="$placeholder"
        --with-device="$device"
        --with-pm=hydra
        --with-hwloc=/usr
        --enable-yield=sched_yield
        --enable-fast=O3,ndebug
        --enable-shared
        --disable-static
        --enable-fortran=all
        --enable-cxx
        --enable-romio
        --with-wrapper-dl-type=none
        --with-custom-version-string="$name"
        FFLAGS="-fallow-argument-mismatch -fallow-invalid-boz"
        FCFLAGS="-fallow-argument-mismatch -fallow-invalid-boz"
    )
}

# In order: compgen lists a folder as it lies on the disk, and patches build on each other.
shim_files() { compgen -G "$top/netmod/shim/*.[ch]" | LC_ALL=C sort; }
public_header() { printf '%s\n' "$top/libulfm/include/ulfm/netmod.h"; }
patch_files() { ((stock)) || compgen -G "$here/patches/*.patch" | LC_ALL=C sort; }

# GCC's profiles; other compilers have others.
with_profile() { [[ ${ULFM_MPICH_PROFILE:-on} != off ]] && "${CC:-gcc}" --version | grep 'Free Software' >/dev/null; }

short_hash() { sha256sum | cut -c1-16; }

# Contents only, so that a check-out elsewhere finds the same build.
hash_contents() { local f; for f in "$@"; do basename "$f"; sha256sum <"$f"; done; }

# What a configured tree depends on.
tree_key() {
    local patches
    mapfile -t patches < <(patch_files)
    {
        basename "$tarball"
        stat -c %s "$tarball"
        printf '%s\n' "${options[@]}"
        "${CC:-gcc}" --version
        "${FC:-gfortran}" --version
        hash_contents "${patches[@]}"
    } | short_hash
}

# What an install depends on: the tree, what is compiled into it, and how the install is finished.
install_key() {
    local shim=()
    ((stock)) || mapfile -t shim < <(shim_files; public_header)
    {
        tree_key
        hash_contents "${shim[@]}"
        sha256sum <"$here/relocate"
        if with_profile; then hash_contents "$here"/training/{training.c,objects}; fi
    } | short_hash
}

# Sets tree and install from the keys.
locate() {
    local kind=mpich
    ((stock)) && kind=mpich-stock
    configure_options
    tree=$cache/$kind-build-$(tree_key)
    install=$cache/$kind-$(mpich_version)-$(install_key)
}
