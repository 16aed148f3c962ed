function __karmada_pyscheduler
    set -l words (commandline -opc)
    karmada-pyscheduler __complete -- $words[2..-1] (commandline -ct | string collect --allow-empty) 2>/dev/null \
        | string match --invert ':*'
end
complete --command karmada-pyscheduler --arguments '(__karmada_pyscheduler)'
