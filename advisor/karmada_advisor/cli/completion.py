"""``karmada-pyscheduler completion``: the script of a shell, which calls ``__complete`` for each line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from karmada_scheduler.framework.profile.factory import Registration

_SCRIPTS: Final[Mapping[str, str]] = {
    "bash": """\
_karmada_pyscheduler() {
    local IFS=$'\\n' lines
    lines=($(karmada-pyscheduler __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    ((${#lines[@]})) || return
    [[ ${lines[-1]} != :0 ]] || compopt -o default
    unset 'lines[-1]'
    COMPREPLY=("${lines[@]%%$'\\t'*}")
}
complete -F _karmada_pyscheduler karmada-pyscheduler
""",
    "zsh": """\
#compdef karmada-pyscheduler
_karmada_pyscheduler() {
    local -a lines choices
    local line
    lines=("${(@f)$(karmada-pyscheduler __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    for line in "${(@)lines[1,-2]}"; do
        choices+=("${${line//:/\\\\:}/$'\\t'/:}")
    done
    _describe choice choices
    [[ ${lines[-1]} != :0 ]] || _files
}
compdef _karmada_pyscheduler karmada-pyscheduler
""",
    "fish": """\
function __karmada_pyscheduler
    set -l words (commandline -opc)
    karmada-pyscheduler __complete -- $words[2..-1] (commandline -ct | string collect --allow-empty) 2>/dev/null \\
        | string match --invert ':*'
end
complete --command karmada-pyscheduler --arguments '(__karmada_pyscheduler)'
""",
}


def run(arguments: argparse.Namespace, _: Sequence[Registration] = ()) -> int:
    """Print the script of a shell; return the exit status."""
    sys.stdout.write(_SCRIPTS[arguments.shell])
    return 0
