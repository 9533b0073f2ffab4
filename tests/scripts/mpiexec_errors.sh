#!/usr/bin/env bash
# What mpiexec answers to wrong command lines: one sentence, at most with the usage behind it, no program that runs, no end
# by a signal, and nothing waits. With -verbose it tells which function found it.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
cd "$work" || exit 1

# wrong STATUS PATTERN ARGUMENTS...: that exit status, nothing on standard output, a first line on standard error that
# matches, and as many lines in all as a sentence, the usage and the end of a proxy have.
wrong() {
    local want=$1 pattern=$2 status=0
    shift 2
    timeout -k 5 "$patience" "$stage/bin/mpiexec" "$@" </dev/null >printed 2>"$work/out" || status=$?
    ((status == want)) || fail "mpiexec $*: exit status $status, wanted $want"
    [[ ! -s printed ]] || fail "mpiexec $*: something on standard output: $(head -1 printed)"
    head -n 1 "$work/out" | grep -q -e "^mpiexec: .*$pattern" || fail "mpiexec $*: does not begin with $pattern"
    (($(wc -l <"$work/out") <= 2)) || fail "mpiexec $*: says more than a sentence"
    ! grep -q -e '\.c:[0-9]' "$work/out" || fail "mpiexec $*: tells its source"
    echo "ok   mpiexec $*"
}
# What is found before the job begins.
refused() { wrong 255 "$@"; }
# What only the proxy on a host can know.
unfit() { wrong 1 "host .*: .*$1" "${@:2}"; }

for count in 0 -1 x 2x '' 3000000000; do refused "-n needs a number, 1 or more; found \"$count\"" -n "$count" echo ran; done
refused '2000000000 processes are more than host .* can have ([0-9]*' -n 2000000000 echo ran
refused '-ppn needs a number, 1 or more; found "0"' -ppn 0 -n 2 echo ran
refused '-output-from needs a number, 0 or more; found "x"' -output-from x -n 1 echo ran
refused '-usize, where it is neither SYSTEM nor INFINITE, needs a number, 1 or more; found "0"' -usize 0 -n 1 echo ran
refused '-gpus-per-proc, where it is not AUTO, needs a number, 0 or more; found "x"' -g x -n 1 echo ran
refused '-n is given twice' -n 2 -n 3 echo ran
for options in '' '-n 2' '-n 2 true :' '-l'; do
    # shellcheck disable=SC2086 # several arguments
    refused 'a program is needed; found the end of the command line' $options
done
refused 'a program is needed; found a colon' : -n 2 echo ran
for option in n np ppn genv env hosts f bind-to map-by membind launcher rmk wdir configfile usize iface output-from demux \
    prepend-pattern outfile-pattern topolib order-nodes localhost; do
    refused "-$option needs a value behind it" -$option
done
refused '-genv needs a value behind A' -genv A
refused '-n needs a value' -n 2 echo ran : -n
refused 'the option -s is unknown; mpiexec -help lists the options' -s all -n 2 echo ran
refused '/nosuch cannot be read: No such file' -f /nosuch -n 1 echo ran
refused '/nosuch cannot be read: No such file' -configfile /nosuch
refused 'the host here needs a number, 1 or more; found "0"' -hosts here:0 -n 1 echo ran
refused 'the host here needs a number, 1 or more; found "x"' -hosts here:x -n 1 echo ran
echo 'here:x' >hosts
refused 'the host here needs a number, 1 or more; found "x"' -f hosts -n 1 echo ran
echo 'here color=red' >hosts
refused 'a host may have binding= and user= behind it; found "color"' -f hosts -n 1 echo ran
for setting in user= binding=; do
    echo "here $setting" >hosts
    refused "$setting behind a host needs a value" -f hosts -n 1 echo ran
done
echo 'here =' >hosts
refused 'a host may have binding= and user= behind it; found "="' -f hosts -n 1 echo ran
printf '\n# two\nhere,there\n' >hosts
refused 'hosts, line 3: one host is needed on a line; found "here,there"' -f hosts -n 1 echo ran
printf 'here\n\0there\n' >hosts
refused 'hosts is no text that mpiexec can read: its line 2 has a byte 0' -f hosts -n 1 echo ran
head -c 20000 /dev/zero | tr '\0' x >hosts
refused 'hosts is no text that mpiexec can read: its line 1 has too many characters' -f hosts -n 1 echo ran
refused '-launcher needs one of ssh, .*; found "foo"' -launcher foo -n 1 echo ran
refused '-rmk needs one of user, .*; found "foo"' -rmk foo -n 1 echo ran
refused '-topolib needs hwloc; found "foo"' -topolib foo -n 1 echo ran
refused '-demux needs poll or select; found "foo"' -demux foo -n 1 echo ran
refused '-order-nodes needs ascending or descending; found "foo"' -order-nodes foo -n 1 echo ran
refused 'no interface nosuch0' -iface nosuch0 -n 1 echo ran
refused '-prepend-pattern needs r (rank), .* found "%q"' -prepend-pattern a%q -n 1 echo ran
refused '-outfile-pattern needs r (rank), .* found "%"' -outfile-pattern a% -n 1 echo ran
refused '-errfile-pattern needs r (rank), .* found "%x"' -errfile-pattern %r%x -n 1 echo ran
for ((line = 0; line < 400; ++line)); do echo "-n 1 true"; done >many
refused 'many has more than 998 words' -configfile many

unfit '-bind-to and -map-by need none, rr, .*; found "foo"' -bind-to foo -n 2 echo ran
unfit '-bind-to and -map-by need none, rr, .*; found "foo"' -bind-to core -map-by foo -n 2 echo ran
for count in x 0 -1; do unfit "core needs a number, 1 or more; found \"$count\"" -bind-to "core:$count" -n 2 echo ran; done
unfit 'this host has less than "core:9999"' -bind-to core:9999 -n 2 echo ran
unfit 'needs processors of this host (0.*); found 99999$' -bind-to user:0,99999 -n 2 echo ran
for list in '' a '0,' ',0' 0-x 0x0 0x 0+ 1.5 12345678; do
    unfit "-bind-to user: needs a list of processors, as 0,1 .*; found \"$list\"" -bind-to "user:$list" -n 2 echo ran
done

# Not wrong.
[[ $("$stage/bin/mpiexec" -bind-to user:0x2,0-0+0 -n 3 echo ran | grep -c ran) == 3 ]] || fail "places for several"
[[ $("$stage/bin/mpiexec" -np=2 -prepend-pattern '%r%%: ' echo ran | sort | tr '\n' ,) == '0%: ran,1%: ran,' ]] || fail "a pattern"
echo '-genvlist=PATH,HOME -n 2 echo ran' >lines
[[ $("$stage/bin/mpiexec" -configfile lines | grep -c ran) == 2 ]] || fail "a file of command lines with a comma"
# Who asks for more is told where and on whose behalf.
"$stage/bin/mpiexec" -verbose -bind-to foo -n 1 echo ran >"$work/out" 2>&1 && fail "-verbose -bind-to foo runs"
grep -q 'get_hw_obj_list (.*topo_hwloc\.c:[0-9]*): -bind-to and' "$work/out" || fail "-verbose does not tell the function"
grep -q 'launch_procs (.*): unable to initialize process topology' "$work/out" || fail "-verbose does not tell the callers"
echo "ok   -verbose"
