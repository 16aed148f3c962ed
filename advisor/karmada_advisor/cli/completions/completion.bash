_karmada_pyscheduler() {
    local IFS=$'\n' lines
    lines=($(karmada-pyscheduler __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    ((${#lines[@]})) || return
    [[ ${lines[-1]} != :0 ]] || compopt -o default
    unset 'lines[-1]'
    COMPREPLY=("${lines[@]%%$'\t'*}")
}
complete -F _karmada_pyscheduler karmada-pyscheduler
