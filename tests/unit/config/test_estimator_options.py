"""The flags about estimators and assumed placements."""

import pytest

from karmada_scheduler.config.flags import OptionsError, parse
from karmada_scheduler.config.options import EstimatorOptions


def test_estimators_are_disabled_by_default_and_other_defaults_are_upstreams() -> None:
    assert parse([]).estimators == EstimatorOptions(
        enabled=False,
        not_in_pull_mode=False,
        timeout=3.0,
        namespace="karmada-system",
        prefix="karmada-scheduler-estimator",
        port=10352,
        cert_file="",
        key_file="",
        ca_file="",
        skip_verify=False,
        failure_policy="partial",
        answer_ttl=1.0,
    )


def test_every_estimator_flag_is_read() -> None:
    found = parse(
        [
            "--enable-scheduler-estimator",
            "--disable-scheduler-estimator-in-pull-mode=true",
            "--scheduler-estimator-timeout=1500ms",
            "--scheduler-estimator-service-namespace=ns",
            "--scheduler-estimator-service-prefix=est",
            "--scheduler-estimator-port=1234",
            "--scheduler-estimator-cert-file=a",
            "--scheduler-estimator-key-file=b",
            "--scheduler-estimator-ca-file=c",
            "--insecure-skip-estimator-verify",
            "--estimator-failure-policy=upstream",
            "--estimator-answer-ttl=250ms",
            "--assumption-ttl=1m",
        ]
    )
    assert found.estimators == EstimatorOptions(
        enabled=True,
        not_in_pull_mode=True,
        timeout=1.5,
        namespace="ns",
        prefix="est",
        port=1234,
        cert_file="a",
        key_file="b",
        ca_file="c",
        skip_verify=True,
        failure_policy="upstream",
        answer_ttl=0.25,
    )
    assert found.assumption_ttl == 60


def test_upstreams_failure_policy_shares_no_responses_by_default() -> None:
    assert parse(["--estimator-failure-policy=upstream"]).estimators.answer_ttl == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--estimator-failure-policy=best-effort"], "invalid choice: 'best-effort'"),
        (["--estimator-answer-ttl=-1s"], "--estimator-answer-ttl must not be negative"),
        (["--assumption-ttl=0s"], "--assumption-ttl must be greater than 0"),
        (["--scheduler-estimator-timeout=-1s"], "Options.SchedulerEstimatorTimeout"),
        (["--scheduler-estimator-port=-1"], "Options.SchedulerEstimatorPort"),
    ],
)
def test_a_problem_names_the_flag(arguments: list[str], message: str) -> None:
    with pytest.raises(OptionsError) as caught:
        parse(arguments)
    assert message in str(caught.value)


def test_a_certificate_without_its_key_is_a_warning() -> None:
    (warning,) = parse(["--scheduler-estimator-cert-file=a"]).warnings
    assert "work together only" in warning
