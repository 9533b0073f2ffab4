#!/usr/bin/env bash
# What ulfmrun answers to wrong command lines and to programs that cannot run: exit codes and sentences. No MPI traffic.
set -uo pipefail
: "${ULFM_STAGE:?stage folder}"
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
ulfmrun=$stage/bin/ulfmrun
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset "${!ULFM_@}" LD_LIBRARY_PATH LD_PRELOAD
failures=0

fail() {
    echo "FAIL $1: $2"
    sed 's/^/     | /' err | head -n 5
    failures=$((failures + 1))
}

# run_to CODE ARGUMENTS...: runs ulfmrun into the files out and err; false, and said so, on another exit code.
run_to() {
    local want=$1 code=0
    shift
    timeout 60 "$ulfmrun" "$@" </dev/null >out 2>err || code=$?
    ((code == want)) && return
    fail "ulfmrun $*" "exit code $code, wanted $want"
    return 1
}

# refused CODE PATTERN ARGUMENTS...: that exit code, nothing on stdout, one sentence on stderr that matches.
refused() {
    local want=$1 pattern=$2
    shift 2
    run_to "$want" "$@" || return
    if [[ -s out ]]; then
        fail "ulfmrun $*" "something on standard output"
    elif ! head -n 1 err | grep -q "^ulfmrun: .*$pattern"; then
        fail "ulfmrun $*" "no line like 'ulfmrun: ... $pattern'"
    else
        echo "ok   ulfmrun $* -> $want"
    fi
}

# accepted CODE PATTERN ARGUMENTS...: that exit code, and standard output matches.
accepted() {
    local want=$1 pattern=$2
    shift 2
    run_to "$want" "$@" || return
    if [[ -n $pattern ]] && ! grep -q -e "$pattern" out; then
        fail "ulfmrun $*" "no line like '$pattern' on standard output"
    else
        echo "ok   ulfmrun $* -> $want"
    fi
}

make_files() {
    echo 'int f(void) { return 0; }' >library.c
    echo 'int f(void); int main(void) { return f(); }' >program.c
    # A program linked with an empty library of that name: all that is read is the name.
    local name
    for name in libmpi.so.40 libmpich.so.10 libmpich.so.12 libmpi.so.12; do
        mkdir -p "$name.d"
        gcc -shared -fPIC "-Wl,-soname,$name" library.c -o "$name.d/$name"
        gcc program.c "$name.d/$name" -o "needs_$name"
    done
    gcc program.c libmpich.so.12.d/libmpich.so.12 -Wl,--disable-new-dtags "-Wl,-rpath,\$ORIGIN/libmpich.so.12.d" -o with_rpath
    gcc program.c libmpich.so.12.d/libmpich.so.12 -Wl,--enable-new-dtags "-Wl,-rpath,\$ORIGIN/libmpich.so.12.d" -o with_runpath
    # Open MPI 1.10: our library's name, its own symbols.
    echo 'int ompi_mpi_comm_world; int f(void) { return 0; }' >ompi.c
    echo 'extern int ompi_mpi_comm_world; int f(void); int main(void) { return f() + ompi_mpi_comm_world; }' >uses_ompi.c
    gcc -shared -fPIC -Wl,-soname,libmpi.so.12 ompi.c -o libold.so
    gcc -fPIC uses_ompi.c ./libold.so -o needs_old_open_mpi
    gcc -c program.c -o object.o
    cp needs_libmpi.so.12 class32 && printf '\1' | dd of=class32 bs=1 seek=4 conv=notrunc status=none
    cp needs_libmpi.so.12 machine && printf '\x16\0' | dd of=machine bs=1 seek=18 conv=notrunc status=none
    head -c 100 needs_libmpi.so.12 >short
    head -c 300 /dev/zero >zeros
    printf '#!/bin/sh\nexit 7\n' >script
    printf 'echo plain text\n' >text
    echo hello >not_executable
    mkdir -p folder
    chmod +x object.o class32 machine short zeros script text
}

make_files || exit 1
need='a number of processes, 1 or more; found'

refused 2 'a program is needed'
refused 2 'a program is needed' -n 2
refused 2 'a program is needed' -n 1 : hostname
refused 2 'a program is needed' -n 1 hostname :
grep -q '^usage: ulfmrun' err || fail "missing program" "no usage line"
refused 2 "-n needs $need \"0\"" -n 0 hostname
refused 2 "-n needs $need \"-3\"" -n -3 hostname
refused 2 "-np needs $need \"two\"" -np two hostname
refused 2 "-n needs $need \"2x\"" -n=2x hostname
refused 2 "-n needs $need \"99999999999\"" -n 99999999999 hostname
refused 2 "-n needs $need \"0\"" -n 1 hostname : -n 0 hostname
refused 2 '-n needs a value' -n
refused 2 '-hosts needs a value' -hosts

refused 2 'no transport is called "drect"; did you mean direct? There are: auto, direct' --transport drect -n 2 hostname
refused 2 'no transport is called "qqqqqqqq"; there are: auto' --transport=qqqqqqqq -n 2 hostname
refused 2 'option=value is needed' --transport direct,fast -n 2 hostname
refused 2 '--transport needs' --transport= hostname
ULFM_TRANSPORT=drect refused 2 'ULFM_TRANSPORT: no transport is called "drect"; did you mean direct?' -n 1 hostname
refused 2 'transport direct has no topology' --transport direct --topology cube:3 -n 8 hostname
refused 2 'has no topology' --topology=cube:3 -n 8 hostname
refused 2 'transport mux has no topology' -hosts "$(hostname),elsewhere" --topology cube:3 -n 8 hostname
faults='could fail at a moment; add --transport with one of: xswitch, dcm, pcie, pointdesign$'
refused 2 "transport ideal has no links.*$faults" --transport ideal --fault 'link 2-3 down at 5s' -n 8 hostname
refused 2 "transport direct has no links.*$faults" --transport=direct --fault 'link 2-3 down at 5s' -n 8 hostname
refused 2 'column 6: needs a probability from 0 to 1, found "2"' --fault drop=2 -n 2 hostname
accepted 0 '^ULFM_FAULT=drop=1e-3,seed=4$' --dry-run --fault drop=1e-3,seed=4 -n 2 hostname
refused 2 'did you mean --transport?' --transprot direct -n 1 hostname
refused 2 'did you mean --stats?' -stats -n 1 hostname
refused 2 'takes no value' --stats=1 -n 1 hostname
refused 2 'a readable TOML file is needed' --config "$scratch/absent.toml" -n 1 hostname
: >"$scratch/empty.toml"
accepted 0 '^ULFM_CONFIG=.*empty.toml$' --dry-run --config "$scratch/empty.toml" -n 1 hostname
accepted 0 '^ULFM_CONFIG=/dev/null$' --dry-run --config /dev/null -n 1 hostname

refused 127 'in no directory of PATH' -n 2 no-such-program-anywhere
refused 127 'write ./with_rpath' -n 2 with_rpath
refused 127 'No such file' -n 2 ./absent
refused 127 'No such file' -n 1 hostname : -n 1 ./absent
refused 126 'is a directory' -n 1 ./folder
refused 126 'not executable' -n 1 ./not_executable
refused 126 'Exec format error' -n 1 ./zeros
refused 126 'Exec format error: the ELF file is damaged' -n 1 ./short
refused 126 'a 32-bit program' -n 1 ./class32
refused 126 'built for another machine' -n 1 ./machine
refused 126 'not a program but an object' -n 1 ./object.o
refused 126 'built for Open MPI (needs libmpi.so.40); ULFM runs MPICH-ABI programs' -n 1 ./needs_libmpi.so.40
refused 126 'built for Open MPI (needs libmpi.so.12)' -n 1 ./needs_old_open_mpi
refused 126 'built for another MPICH (needs libmpich.so.10)' -n 1 ./needs_libmpich.so.10

accepted 0 '^usage: ulfmrun' --help
accepted 0 '^ulfmrun (ULFM) [0-9]' --version
accepted 7 '' -n 1 ./script
accepted 7 '' -genvnone -n 1 ./script
accepted 0 'plain text' -n 1 ./text
accepted 0 'echoed' -n 2 echo echoed
accepted 0 'second' -n 1 echo first : -n 1 echo second
accepted 0 "^LD_LIBRARY_PATH=$stage/lib$" --dry-run -n 2 ./needs_libmpich.so.12
accepted 0 '^ULFM_STATS=1$' --dry-run --stats -n 2 hostname
accepted 0 '^ULFM_TRANSPORT=direct$' --dry-run --transport=direct -n 2 hostname
accepted 0 '^MPIR_CVAR_NEMESIS_NETMOD=ulfm$' --dry-run -n 2 hostname
accepted 0 "LD_LIBRARY_PATH $stage/lib:/else -l hostname" --dry-run -genv LD_LIBRARY_PATH=/else -l hostname
printf 'localhost:2 user=me   binding=rr # here\n' >right_hosts
accepted 0 '-f right_hosts .*-ppn 1 .*-n 1 true : -n 1 true' --dry-run -f right_hosts -ppn 1 -n 1 true : -ppn 1 -n 1 true
accepted 0 '-bind-to rr -ppn 2 -n 2 hostname -n 0' --dry-run -bind-to rr -ppn=2 -n 2 hostname -n 0

# The path built into a program: DT_RPATH wins over LD_LIBRARY_PATH, DT_RUNPATH does not.
accepted 0 "^LD_PRELOAD=$stage/lib/libmpi.so.12$" --dry-run -n 1 ./with_rpath
grep -q 'names its own MPI' err || fail "DT_RPATH" "not said"
accepted 0 '^LD_LIBRARY_PATH=' --dry-run -n 1 ./with_runpath
grep -q LD_PRELOAD out && fail "DT_RUNPATH" "preloads without need"

# Programs without MPI get the environment too, and the launcher's own words are left to it.
accepted 0 "^$stage/lib" -n 1 printenv LD_LIBRARY_PATH
accepted 0 '^ulfm$' -genvnone -n 1 /usr/bin/printenv MPIR_CVAR_NEMESIS_NETMOD
accepted 0 'HYDRA build details' -info

# The user's key: one that has lost its content is made anew; one that is none stays, and that is said.
key=$scratch/cache/ulfm/job-key
mkdir -p "${key%/*}"
for content in '' not-a-key; do
    printf %s "$content" >"$key"
    XDG_CACHE_HOME=$scratch/cache accepted 0 '' -n 1 true
    if [[ -z $content ]]; then
        grep -Eqx '[0-9a-f]{32}' "$key" || fail 'an empty key' 'stays'
    elif [[ $(<"$key") != "$content" ]] || ! grep -q "$key: needs 32 hexadecimal digits" err; then
        fail 'a key that is none' 'is replaced, or without a word'
    fi
done

# What a killed job has left in /dev/shm is removed when it is old and no process has it mapped.
for name in old young mapped; do declare "$name=$(mktemp /dev/shm/mpich_shar_tmpXXXXXX)"; done
trap 'rm -rf "$scratch" "$old" "$young" "$mapped"' EXIT
coproc python3 -c 'import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
os.ftruncate(file, 4096)
memory = mmap.mmap(file, 4096)
print("mapped", flush=True)
sys.stdin.read()' "$mapped"
read -r <&"${COPROC[0]}"
touch -d '20 minutes ago' "$old" "$mapped"
accepted 0 '' -n 1 true
[[ ! -e $old ]] || fail 'old file in /dev/shm' 'is still there'
[[ -e $young && -e $mapped ]] || fail 'file in use in /dev/shm' 'was removed'

echo "$failures failures"
exit $((failures > 0))
