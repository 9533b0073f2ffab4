#!/usr/bin/env bash
# What every tool has: --help with an example and its exit codes, --version, a manual page with both, and completion for bash.
set -uo pipefail
: "${ULFM_STAGE:?stage folder}"
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
[[ -x $stage/bin/ulfmrun ]] || { echo "skipped: no ulfmrun in the stage" && exit 77; }
# shellcheck source=counting.bash
. "$(dirname "${BASH_SOURCE[0]}")/counting.bash"
cd "$scratch" || exit 1
unset "${!ULFM_@}"
PATH=$stage/bin:$PATH

# says TOOL OPTION PATTERN...: ends well, with nothing on standard error, and has each pattern.
says() {
    local tool=$1 option=$2 pattern
    shift 2
    timeout 60 "$tool" "$option" >out 2>err </dev/null || fail "$tool $option: status $?"
    [[ ! -s err ]] || fail "$tool $option: on standard error: $(head -n 1 err)"
    for pattern in "$@"; do grep -qiE "$pattern" out || fail "$tool $option: no line like '$pattern'"; done
}

# completes WORDS...: the completion of the last word, one a line.
completes() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _ulfm 2>/dev/null
    printf '%s\n' "${COMPREPLY[@]}"
}

count=0
for path in "$stage"/bin/ulfm* "$stage"/bin/nx*; do
    tool=${path##*/}
    count=$((count + 1))
    says "$tool" --help '^examples?:' '^exit code:|exit code:' "manual: .*\("
    says "$tool" --version "^$tool \(?.*[0-9]+\.[0-9]+\.[0-9]+"
    page=$stage/share/man/man1/$tool.1
    [[ -f $page ]] || fail "$tool has no page in section 1"
    grep -qiE '^\.SH "?EXIT STATUS' "$page" || fail "$tool(1) has no exit statuses"
    grep -qiE '^\.SH "?EXAMPLES?' "$page" || fail "$tool(1) has no example"
    completion=$stage/share/bash-completion/completions/$tool
    [[ -f $completion ]] || { fail "$tool has no completion" && continue; }
    # shellcheck source=/dev/null
    . "$completion"
    complete -p "$tool" >/dev/null || fail "bash does not know the completion of $tool"
    [[ $tool == ulfm_pmi ]] || completes "$tool" --v | grep -x -- --version >/dev/null || fail "$tool --v<TAB> does not give --version"
done
((count >= 12)) || fail "only $count tools in $stage/bin"
completes ulfmrun --transport xs | grep -x xswitch >/dev/null || fail "ulfmrun --transport xs<TAB>"
completes ulfm_perf lat | grep -x latency >/dev/null || fail "ulfm_perf lat<TAB>"
completes ulfm_perf latency --iter | grep -x -- --iterations >/dev/null || fail "ulfm_perf latency --iter<TAB>"
completes ulfm_topo rou | grep -x routes >/dev/null || fail "ulfm_topo rou<TAB>"
completes ulfm_sim load -T drag | grep -x dragonfly: >/dev/null || fail "ulfm_sim load -T drag<TAB>"

# nxf77(1) and nxcc(1) promise these.
printf '      program p\n      end\n' >p.f
printf '      program p\n      nonsense (\n      end\n' >wrong.f
if command -v gfortran >/dev/null; then
    nxf77 -c p.f || fail "nxf77 -c of a right program: status $?"
    status=0 && nxf77 -c wrong.f 2>/dev/null || status=$?
    ((status == 1)) || fail "nxf77 of a wrong program: status $status"
fi
status=0 && nxf77 -i8 p.f 2>/dev/null || status=$?
((status == 2)) || fail "nxf77 -i8: status $status"
for tool in nxcc nxf77; do
    status=0 && NXCC_COMPILER=nosuchcompiler NXF77_COMPILER=nosuchcompiler $tool p.f >/dev/null 2>&1 || status=$?
    ((status == 127)) || fail "$tool without a compiler: status $status"
done
echo "$count tools, $failures failures"
exit $((failures > 0))
