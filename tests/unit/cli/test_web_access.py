"""Flags of the page that do not fit together end it with a sentence, before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada_scheduler.command import main


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--bind-address=0.0.0.0:1"], "readers are not authenticated"),
        (["--bind-address=:1"], "or use --auth=token"),
        (["--bind-address=10.0.0.1:1", "--auth=token"], "tokens would be sent in clear text"),
        (["--tls-cert-file=a"], "--tls-cert-file and --tls-key-file belong together"),
        (["--tls-key-file=a", "--auth=token"], "--tls-cert-file and --tls-key-file belong together"),
        (["--tls-cert-file=a", "--tls-key-file=b"], "a: No such file or directory"),
        (["--auth=token", "--clusters=a"], "--auth=token needs a control plane"),
        (["--auth=proxy"], "invalid choice: 'proxy'"),
        (["--auth-cache=1s"], "expected 5s to 60s, got '1s'"),
        (["--auth-cache=61s"], "expected 5s to 60s, got '61s'"),
    ],
)
def test_flags_that_do_not_fit_together_are_refused(
    flags: list[str],
    problem: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)

    try:
        status = main(["web", *flags])
    except SystemExit as end:
        status = int(end.code or 0)

    assert status == 2
    assert problem in capsys.readouterr().err
