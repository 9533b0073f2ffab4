# Completion of ULFM's tools for bash: options and commands come from each tool's own --help.
_ulfm() {
    local word=${COMP_WORDS[COMP_CWORD]} tool=${COMP_WORDS[0]} previous=${COMP_WORDS[COMP_CWORD - 1]} words
    # Behind a command, its options besides.
    local command=
    [[ $COMP_CWORD == 1 || ${COMP_WORDS[1]} == -* || $tool != ulfm_* ]] || command=${COMP_WORDS[1]}
    case $previous in
    --transport) words="auto direct $(ulfm_info -t 2>/dev/null | awk '/^  [a-z]/ { print $1 }')" ;;
    --topology | -T) words="single: th8 chain: tree: mesh: torus: cube: boards: gh: fullmesh: hyperx: fattree: dragonfly:" ;;
    --config | --trace | --stats-file | --times | --svg | -o | -f) compopt -o default && return ;;
    *)
        words=$({ "$tool" --help && [[ $command ]] && "$tool" "$command" --help; } 2>/dev/null | grep -oE '(^|[ ,])--?[a-z][a-z-]*' | tr -d ' ,' | sort -u)
        ((COMP_CWORD > 1)) || words+=" $("$tool" --help 2>/dev/null | awk '/^Subcommands:/ { on = 1; next } on && /^  [a-z]/ { print $1 }')"
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    ((${#COMPREPLY[@]})) || compopt -o default
}
complete -F _ulfm ulfmrun ulfm_info ulfm_perf ulfm_stat ulfm_topo ulfm_sim ulfm_doctor ulfm_pmi ulfm_hostd nxcc nxf77 nxhost
