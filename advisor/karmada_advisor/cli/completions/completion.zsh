#compdef karmada-pyscheduler
_karmada_pyscheduler() {
    local -a lines choices
    local line
    lines=("${(@f)$(karmada-pyscheduler __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    for line in "${(@)lines[1,-2]}"; do
        choices+=("${${line//:/\\:}/$'\t'/:}")
    done
    _describe choice choices
    [[ ${lines[-1]} != :0 ]] || _files
}
compdef _karmada_pyscheduler karmada-pyscheduler
