from __future__ import annotations

from tools.oracle.record import summarize

LOG = """  Building the oracle into /somewhere
30 cases, 0 different, 5/s
        12  gate WorkloadAffinity on
         7  strategy missing

allowed variations: 2 x some order
upstream's defects: 3 x some crash
40 cases in 2 scenarios (55 runs of the algorithm), 2 features, 0 different, 6 s, 7 cases/s
"""


def test_the_record_adds_up_all_runs() -> None:
    text = summarize([LOG, LOG], how="Today.")
    assert text.startswith("**80 cases, none different.** Today.\n")
    assert "2 seeds, 4 scenarios, 110 runs of upstream's algorithm, 12 s." in text
    assert "| some order | 4 |" in text
    assert "| some crash | 6 |" in text
    assert "**Settings.** gate WorkloadAffinity on 24" in text
    assert "**Placements.** strategy missing 14" in text


def test_an_unfinished_run_is_ignored() -> None:
    assert summarize([LOG, "30 cases, 0 different, 5/s\n"], how="") == summarize([LOG], how="")


def test_the_record_shows_the_number_of_differences() -> None:
    assert summarize([LOG.replace("0 different, 6 s", "1 different, 6 s")], how="").startswith(
        "**40 cases, 1 different.**"
    )
