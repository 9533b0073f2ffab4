#!/usr/bin/env bash
# Wrong uses of every tool: each ends soon with a status that is not 0, one clear sentence on standard error, nothing on
# standard output, and neither a stack of error codes nor a path of the build.
set -uo pipefail
: "${ULFM_STAGE:?stage folder}"
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset "${!ULFM_@}" LD_LIBRARY_PATH LD_PRELOAD
PATH=$stage/bin:$PATH
failures=0 tries=0

fail() {
    echo "FAIL $1"
    sed 's/^/     | /' err | head -n 4
    failures=$((failures + 1))
}

# wrong PATTERN COMMAND...: the command is refused, and its first line on standard error matches the pattern.
wrong() {
    local pattern=$1 code=0
    shift
    tries=$((tries + 1))
    timeout 60 "$@" </dev/null >out 2>err || code=$?
    if ((code == 0)); then fail "$*: accepted"
    elif ((code == 124)); then fail "$*: hangs"
    elif ((code > 128)); then fail "$*: ended by a signal ($code)"
    elif [[ -s out ]]; then fail "$*: something on standard output"
    elif [[ ! -s err ]]; then fail "$*: not a word (status $code)"
    elif (($(wc -l <err) > 4)); then fail "$*: $(wc -l <err) lines"
    elif ! head -n 1 err | grep -q "^$(basename "$1"): "; then fail "$*: the first line does not begin with the tool's name"
    elif ! grep -qE -- "$pattern" err; then fail "$*: no line like '$pattern'"
    elif grep -qE 'MPIR_|error stack|/build/|terminate called|line [0-9]+: ' err; then fail "$*: a stack or a path of the build"
    fi
}

# each PATTERN TOOL ARGUMENT...: one try for each argument, which may hold several words.
each() {
    local pattern=$1 tool=$2 words
    shift 2
    for a in "$@"; do
        read -ra words <<<"$a"
        wrong "$pattern" "$tool" "${words[@]}"
    done
}

mkdir -p folder
printf 'transport = "xswitch"\ntopology = "no-shape"\n' >shape.toml
printf 'transport = 3.5\n' >type.toml
printf '[table]\ntransport = "direct"\n' >table.toml
printf 'transport = "drect"\n' >name.toml
printf 'transport =\n' >broken.toml
printf 'depth = 0\n' >range.toml
printf 'int main(void) { return 0; }\n' >program.c
gcc program.c -o program
printf 'hello\n' >text_file
chmod 644 text_file

# ---- ulfmrun
for ports in 40000 5-1 70000-80000 0-9 5000-5100x; do ULFM_PORTS=$ports wrong 'two TCP ports are needed' ulfmrun -n 1 ./program; done
wrong 'two TCP ports are needed' ulfmrun -genv ULFM_PORTS abc -n 1 ./program
wrong 'a program is needed' ulfmrun
each 'a program is needed' ulfmrun "-n 2" "-n 1 :" "-n 1 ./program :" "-ppn 2" "--stats" "--transport direct"
each 'a number of processes' ulfmrun "-n 0 ./program" "-n -1 ./program" "-n two ./program" "-n 1.5 ./program" "-n 2x ./program" \
    "-np= ./program" "-n 99999999999999 ./program" "-n 1 ./program : -n 0 ./program"
each 'needs a value' ulfmrun "-n" "-hosts" "--transport" "--topology" "--fault" "--config" "--trace" "-ppn" "-genv A"
each 'no transport is called' ulfmrun "--transport drect ./program" "--transport xswich ./program" "--transport DIRECT ./program" \
    "--transport xswitch2 ./program"
each 'takes no options' ulfmrun "--transport direct,frame=64 ./program" "--transport direct,a=b ./program"
each 'option=value is needed' ulfmrun "--transport , ./program" "--transport xswitch,frame ./program" "--transport direct,fast ./program" \
    "--transport xswitch, ./program" "--transport xswitch,=4 ./program"
each 'no option' ulfmrun "--transport xswitch,frme=256 ./program" "--transport dcm,pase=ipsc2 ./program" \
    "--transport pcie,md=x ./program"
each 'needs a number' ulfmrun "--transport xswitch,frame=0 ./program" "--transport xswitch,frame=x ./program" \
    "--transport xswitch,frame=-1 ./program" "--transport xswitch,frame=9999999999999999999 ./program" \
    "--transport xswitch,fifo=1 ./program" "--transport xswitch,frame=64Q ./program"
each 'needs (mode|pace)=' ulfmrun "--transport pcie,mode=fast ./program" "--transport dcm,pace=slow ./program"
mkdir removed wrapped
printf '#!/bin/sh\ncd removed && rmdir ../removed && exec %s "$@"\n' "$stage/bin/ulfmrun" >wrapped/ulfmrun
chmod +x wrapped/ulfmrun
wrong 'change to one that exists' wrapped/ulfmrun -n 2 /bin/true
wrong 'name two files' ulfmrun --trace same --stats-file ./same -n 2 ./program
wrong 'given twice' ulfmrun --transport xswitch,frame=256,frame=512 ./program
each 'lower go or raise stop' ulfmrun "--transport xswitch,stop=20,go=20 ./program" "--transport dcm,stop=8,go=7 ./program"
each 'lower stop or raise fifo' ulfmrun "--transport xswitch,fifo=8,stop=8 ./program" "--transport dcm,fifo=16,stop=16 ./program"
each 'no effect in the host.s time; add --time virtual' ulfmrun "--transport xswitch,cycle_ps=8000 ./program" \
    "--transport dcm,fifo=64,preset=ipsc1 ./program" "--transport ideal,look_ns=5,gap=3 ./program"
each 'given twice' ulfmrun "--transport xswitch --time virtual,compute=none,compute=fixed:3 ./program" \
    "--transport xswitch --time virtual,cpu=2,cpu=3 ./program"
each 'cpu= scales computing that is measured' ulfmrun "--transport xswitch --time virtual,cpu=2,compute=none ./program" \
    "--transport dcm --time virtual,compute=fixed:5,cpu=2 ./program"
wrong 'with compute=none that is nothing' ulfmrun --transport xswitch --time virtual,compute=none,record=gaps ./program
each 'there are compute=' ulfmrun "--transport xswitch --time virtual,cpu=0 ./program" "--transport xswitch --time virtual, ./program"
MPICH_ASYNC_PROGRESS=1 wrong 'leave it out with --time virtual' ulfmrun --transport xswitch --time virtual ./program
each 'add --transport with one of: xswitch' ulfmrun "--topology mesh:2x2 ./program" "--transport direct --topology cube:2 ./program" \
    "--share host ./program" "--transport auto --topology th8 ./program"
wrong 'add --transport with one of: xswitch' ulfmrun --fault 'link 0-1 down at 1s' ./program
wrong 'add --transport with one of: xswitch' ulfmrun --transport direct --fault 'node 0 dead at 1s' ./program
each 'topology' ulfmrun "--transport xswitch --topology mish:2x2 ./program" "--transport xswitch --topology mesh:0x2 ./program" \
    "--transport xswitch --topology mesh ./program" "--transport xswitch --topology mesh:2x ./program" \
    "--transport xswitch --topology cube:99 ./program" "--transport xswitch --topology single:0 ./program" \
    "--transport xswitch --topology tree:99 ./program" "--transport xswitch --topology ./absent.toml ./program" \
    "--transport xswitch --topology chain:-1 ./program" "--transport dcm --topology cube:-2 ./program"
each 'processes' ulfmrun "--transport dcm -n 100000 ./program" "--transport dcm --dry-run -n 100000 ./program"
each 'needs a probability|needs' ulfmrun "--fault drop=2 ./program" "--fault drop= ./program" "--fault dorp=0.1 ./program" \
    "--fault drop=-1 ./program" "--fault drop=x ./program" "--fault ,, ./program"
wrong 'needs|there is' ulfmrun --transport xswitch --fault 'link 0-99 down at 1s' ./program
wrong 'needs|there is' ulfmrun --transport xswitch --fault 'switch 77 dead at 1s' ./program
wrong 'needs|there is' ulfmrun --transport xswitch --fault 'link 0-1 down at soon' ./program
each 'write -n 2' ulfmrun "-n2 ./program"
wrong 'write -np 4' ulfmrun -np4 ./program
each 'there is no option' ulfmrun "-x A=1 ./program" "--mca btl self ./program" "--oversubscribe ./program" \
    "--allow-run-as-root ./program" "--bind ./program" "--nosuchoption ./program" "-q ./program" "--npernode 2 ./program" \
    "--transprot direct ./program" "-stats ./program" "--topo mesh:2x2 ./program" "--use-hwthread-cpus ./program"
each 'takes no value' ulfmrun "--stats=1 ./program" "--dry-run=yes ./program" "--help=me" "--version=2"
each 'found an empty value' ulfmrun "--transport= ./program" "--topology= ./program" "--fault= ./program" "--trace= ./program"
each 'readable TOML file' ulfmrun "--config absent.toml ./program" "--config folder ./program" "--config /nosuch/f ./program"
each 'toml' ulfmrun "--config type.toml ./program" "--config table.toml ./program" "--config name.toml ./program" \
    "--config broken.toml ./program" "--config range.toml ./program"
wrong 'no shape has that name' ulfmrun --config shape.toml ./program
each 'folder|ordinary file' ulfmrun "--trace folder ./program" "--trace /nosuch/t ./program" "--trace /dev/full ./program" \
    "--trace /dev/null ./program" "--trace / ./program"
each 'node or host|one of' ulfmrun "--transport xswitch --share both ./program"
each 'in no directory of PATH' ulfmrun "no-such-program-at-all" "-n 2 no-such-program-at-all"
each 'No such file' ulfmrun "./absent" "-n 1 ./program : -n 1 ./absent" "-wdir /nosuch ./absent"
wrong 'is a directory' ulfmrun ./folder

# What mpiexec would meet with a trace of its own functions, with a division by zero, or by waiting for ever.
printf '# nobody\n\n' >no_hosts
printf 'localhost:two\n' >bad_hosts
printf 'nosuchname:2\n' >strange_hosts
printf 'localhost:\n' >unnumbered_hosts
printf 'localhost user=\n' >nobodys_hosts
printf 'localhost binding=\n' >unbound_hosts
printf 'localhost,localhost\n' >hosts_in_a_line
printf 'localhost\n\0localhost\n' >no_text
each 'has no address here' ulfmrun "-hosts nosuchname ./program" "-hosts localhost,nosuchname:3 ./program" \
    "-host someone@nosuchname ./program" "-f strange_hosts ./program"
each 'a readable file with a host a line' ulfmrun "-f /nosuch ./program" "-hostfile folder ./program" "-machinefile absent ./program"
each 'a host is needed' ulfmrun "-hosts , ./program" "-f no_hosts ./program" "-hosts -o ./program" \
    "-hosts localhost,,localhost ./program" "-hosts localhost, ./program"
each 'needs a value' ulfmrun "-f nobodys_hosts ./program" "-f unbound_hosts ./program"
wrong 'one host is needed on a line' ulfmrun -f hosts_in_a_line ./program
wrong 'byte 0' ulfmrun -f no_text ./program
each 'needs a value' ulfm_doctor "-f nobodys_hosts" "-f unbound_hosts"
each 'a number of processes, 1 or more' ulfm_doctor "-f unnumbered_hosts" "-f bad_hosts"
each 'a number of processes, 1 or more' ulfmrun "-hosts localhost:x ./program" "-hosts localhost:0 ./program" \
    "-f bad_hosts ./program" "-f unnumbered_hosts ./program" "-hosts localhost: ./program" "-ppn 0 ./program" "-ppn x ./program" "-usize x ./program"
printf 'localhost slots=2\n' >slots_hosts
each 'found "slots=2", for which it wants localhost:2' ulfmrun "-f slots_hosts ./program"
wrong 'there is a blank in the list' ulfmrun -hosts 'localhost, localhost' ./program
wrong 'an address of IPv6 is needed' ulfmrun -hosts localhost:2:3 ./program
wrong '-ppn is given twice, with "1" and with "2"' ulfmrun -ppn 1 -n 1 ./program : -ppn 2 -n 1 ./program
for range in 5 5: 50999:50000 1:2:3 a:b 0:70000; do
    export MPIEXEC_PORT_RANGE=$range
    wrong 'needs a range of ports, as in 50000:50999' ulfmrun -n 1 ./program
    unset MPIEXEC_PORT_RANGE
done
each 'is given twice for one program' ulfmrun "-n 2 -n 3 ./program" "-n 1 ./program : -n 2 -np 2 ./program"
each 'two values of one setting' ulfmrun "--transport xswitch -genv ULFM_TRANSPORT tcp -n 2 ./program" \
    "--fault drop=0.1 -n 1 -env ULFM_FAULT=drop=0.5 ./program"
each 'only once' ulfmrun "--fault drop=0.9,drop=0 ./program" "--fault seed=1,drop=0.1,seed=2 ./program"
wrong 'hosts are named once' ulfmrun -hosts localhost -f bad_hosts ./program
wrong 'an address of IPv6 is needed' ulfmrun -hosts '[::1:2' ./program
wrong 'no network interface' ulfmrun -iface nosuch ./program
each 'a folder is needed' ulfmrun "-wdir /nosuch $PWD/program" "-wdir $PWD/text_file $PWD/program"
each 'needs one of' ulfmrun "-launcher nosuch ./program" "-rmk nosuch ./program" "-demux nosuch ./program" \
    "-topolib nosuch ./program" "-order-nodes x ./program"
each 'did you mean core' ulfmrun "-bind-to cores ./program" "-map-by cor ./program"
each 'bind:LIST or interleave:LIST' ulfmrun "-membind numa ./program" "-membind bind ./program" "-membind bind:a ./program"
each 'behind core:' ulfmrun "-bind-to core:0 ./program" "-bind-to core:x ./program"
each 'a folder that can be written' ulfmrun "-outfile /nosuch/x ./program" "-errfile-pattern /nosuch/%r ./program"
each 'behind %' ulfmrun "-prepend-pattern %q ./program" "-outfile-pattern out.% ./program"
wrong 'needs a rank' ulfmrun -output-from x ./program
wrong 'a readable file of command lines' ulfmrun -configfile /nosuch ./program
wrong 'a program that starts processes' ulfmrun -launcher-exec ./absent ./program
wrong 'not executable' ulfmrun ./text_file
for setting in TRANSPORT=drect TRANSPORT=xswitch,frme=1 FAULT=drop=7 DEPTH=x DEPTH=0 STATS=maybe SLOT=1 WINDOW=1 \
    EAGER=-1 GIVE_UP=soon SHARE=all ENGINE=fast CONTROL=smoke PROTOCOL=never TRACE=/nosuch/t CONFIG=absent.toml CONFIG=folder \
    PARK_LIMIT=0 LANES=99999999 FRAME=1; do
    export "ULFM_${setting%%=*}=${setting#*=}"
    wrong 'ULFM_|absent.toml|folder' ulfmrun -n 1 ./program
    unset "ULFM_${setting%%=*}"
done

# Stacks too small for mpiexec, which could not say so any more.
mkdir small
printf '#!/bin/bash\nulimit -s 64 && exec "%s/bin/ulfmrun" "$@"\n' "$stage" >small/ulfmrun
chmod +x small/ulfmrun
each 'need stacks of 128.0 KB, but the limit is 64.0 KB; raise it' small/ulfmrun "-n 2 ./program" "--transport xswitch ./program"

# One of each, also for several programs.
each '--transport is given twice, with "direct" and with "xswitch"' ulfmrun "--transport direct --transport xswitch ./program" \
    "--transport=direct -n 1 ./program : --transport=xswitch -n 1 ./program"
each 'is given twice' ulfmrun "--topology mesh:2x2 --transport xswitch --topology cube:2 ./program" "--time virtual --time virtual,compute=none ./program"

# Fewer processes than the job needs. The limit is not root's.
mkdir limited
cat >limited/ulfmrun <<EOF
#!/bin/bash
((EUID)) || drop=(setpriv --reuid=65534 --regid=65534 --clear-groups)
ulimit -u 60 && cd / && exec "\${drop[@]}" "$stage/bin/ulfmrun" "\$@"
EOF
chmod +x limited/ulfmrun
if limited/ulfmrun --version >/dev/null 2>&1; then
    each 'more processes, but the limit is' limited/ulfmrun "-n 200 /bin/true" "-hosts localhost -n 200 /bin/true" \
        "--transport xswitch -n 100 /bin/true"
fi

# ---- ulfm_info
each 'no option|takes options only|required|did you mean|is called' ulfm_info "--jsn" "--mpii" "version" "-z" "--man-rows nosuch"
ULFM_DEPTH=x wrong 'DEPTH' ulfm_info -e

# ---- ulfm_topo
wrong 'a command is needed' ulfm_topo
each 'there is no command' ulfm_topo "sho mesh:2x2" "rotes mesh:2x2" "mesh:2x2" "pgn mesh:2x2"
each 'required|missing' ulfm_topo "show" "routes" "svg"
each 'topology' ulfm_topo "show mish:2x2" "show mesh:0x0" "show mesh:2" "show cube" "show ./absent.toml" "show boards:0x1" \
    "show tree:" "show single:x" "dot torus:1" "svg chain:0"
each 'node|expected|required' ulfm_topo "routes mesh:2x2 0 9" "routes mesh:2x2 a b" "routes mesh:2x2 -1 0"
each '.' ulfm_topo "show mesh:2x2 -n 0" "show mesh:2x2 -n x" "show mesh:2x2 --dead s9.A" "show mesh:2x2 --dead zzz" \
    "show mesh:2x2 --jsno" "dot mesh:2x2 --json"

# ---- ulfm_perf
wrong 'a command is needed' ulfm_perf
each 'there is no command' ulfm_perf "latncy" "bandwith" "ping" "Latency"
each 'emulated interconnect' ulfm_perf "latency --topology mesh:4x4" "bandwidth --nodes 0,1" \
    "latency --transport direct --topology mesh:2x2"
each '.' ulfm_perf "latency --size x" "latency --size 9:1" "latency --size -1" "latency --bind 0" "latency --bind a,b" \
    "latency --window 0" "latency --depth 99999999" "latency --transport drect" "latency --transport xswitch --topology zzz" \
    "latency --transport xswitch --nodes 0" "latency --iteratons 5" "latency --json --csv" "latency --iterations x" \
    "latency --transport xswitch --topology mesh:2x2 --nodes 0,99"

# ---- ulfm_sim
wrong 'a command is needed' ulfm_sim
each 'there is no command' ulfm_sim "loda -T mesh:2x2" "zeros" "mesh:2x2"
each 'there is no option' ulfm_sim "load --jsn" "load -T mesh:2x2 --cycles 0" "zero --nosuch"
each 'topology' ulfm_sim "load -T mish:2x2" "load -T ./absent.toml" "zero -T mesh:0x2" "load -T mesh:2x2 -t dcm -r 0.1"
each 'a whole number from 0' ulfm_sim "load --seed -1" "load --seed 99999999999999999999999" "load --seed x"
each 'above 0' ulfm_sim "load -r x" "load -r 0" "load -r 0.1:0.05:0.01"
each 'there is no model' ulfm_sim "load -t drect" "zero -t zzz"
each '.' ulfm_sim "load --pattern zzz" "load --seed x" "load --json --csv" "load mesh:2x2" "load -r -1" "zero -j 0" "load --measure 1" \
    "load -T mesh:2x2 -r 0.1 --routing ./absent.so"

# ---- ulfm_hostd
each 'ulfmrun starts it' ulfm_hostd "" "--nosuch" "1 2" "a b c"
wrong 'is no address' ulfm_hostd zz 1 1

# ---- nxf77
wrong 'INTEGER\*4 only' nxf77 -i8 program.f

# ---- ulfm_stat
each '.' ulfm_stat "--intervall 1" "-i 0" "-i x" "-c 3" "nopid" "-i 1 -c 0"
each 'not in range 1 to 4294967295' ulfm_stat "-i 1 -c 0" "--top 0"
wrong 'a number is needed' ulfm_stat -i nan
wrong 'no job|holds no' ulfm_stat 1

# ---- ulfm_doctor
wrong 'a host is needed' ulfm_doctor
each '.' ulfm_doctor "--quite node1" "-f" "--launcher-exec" "-x node1"
wrong 'cannot be read' ulfm_doctor -f /nosuch/hostfile

# ---- ulfm_pmi
wrong 'a program is needed' ulfm_pmi
wrong 'no launcher that speaks PMI' ulfm_pmi ./program
wrong 'no launcher that speaks PMI' ulfm_pmi -- ./program
wrong 'there is no option --foo' ulfm_pmi --foo ./program
PMI_FD=3 wrong 'No such file' ulfm_pmi ./absent

# ---- nxhost
wrong 'a host program is needed' nxhost
each 'a number of nodes' nxhost "-n 0 ./program" "-n x ./program" "-n" "-n -4 ./program" "-n 99999 ./program" "./program : -n 0 ./program"
each 'there is no option' nxhost "--nodes 4 ./program" "-q ./program"
each 'no such program|cannot be executed' nxhost "./absent" "no-such-host-program" "./folder" "./text_file"
wrong 'a program for the nodes is needed' nxhost ./program :
PMI_RANK=0 wrong 'without ulfmrun' nxhost -n 2 ./program

# ---- results that nobody gets
for words in "ulfm_info" "ulfm_info --json" "ulfm_info --mpi" "ulfm_perf floor --json" "ulfm_topo show cube:2" "ulfm_sim zero" \
    "ulfmrun --help" "ulfmrun --version" "ulfmrun --dry-run -n 1 ./program"; do
    read -ra words <<<"$words"
    code=0 tries=$((tries + 1))
    timeout 100 "${words[@]}" >/dev/full 2>err || code=$?
    ((code == 1)) && grep -q "^${words[0]}: standard output cannot be written" err || fail "${words[*]} >/dev/full: status $code"
done

echo "$tries tries, $failures failures"
((tries >= 150)) || { echo "FAIL: fewer than 150 tries" && exit 1; }
exit $((failures > 0))
