import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from karmada_scheduler.framework import load_timeout
from karmada_scheduler.framework.load_timeout import LoadTimeoutError, call_in_thread


def raising(error: BaseException) -> Callable[[], NoReturn]:
    def function() -> NoReturn:
        raise error

    return function


def loops() -> NoReturn:
    while True:
        pass


def test_a_thread_that_hangs_does_not_keep_the_process_alive() -> None:
    assert call_in_thread(lambda: threading.current_thread().daemon)


def test_the_result_or_exception_of_the_thread_is_returned_or_raised() -> None:
    assert call_in_thread(lambda: 7) == 7
    for error in (ValueError("x"), SystemExit(1)):
        with pytest.raises(type(error)):
            call_in_thread(raising(error))


@pytest.mark.parametrize("hangs", [loops, lambda: time.sleep(3)], ids=["in Python", "outside"])
def test_a_function_that_does_not_end_is_an_error_with_its_line(
    hangs: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_timeout, "LOAD_SECONDS", 0.1)
    with pytest.raises(
        LoadTimeoutError, match=rf"did not end within 0.1s; it is at line \d+ of {__file__}, in "
    ):
        call_in_thread(hangs)


def test_the_error_has_the_line_in_the_file_of_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_timeout, "LOAD_SECONDS", 0.1)

    def reads() -> None:
        threading.Event().wait(3)  # the innermost frame is in the standard library

    with pytest.raises(LoadTimeoutError, match=rf"it is at line \d+ of {__file__}, in reads"):
        call_in_thread(reads, file=__file__)
