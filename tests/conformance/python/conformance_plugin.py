"""Lets the tests of azure-cosmos run against Mayfly as against the emulator, and tells how each ended.

Nothing of the tests or of the SDK is changed: the settings module of the tests takes only one address for the
emulator's, so it is told that ours is it, and it waits for minutes where a server refuses, so it is told to be quicker.
Each test becomes a line of JSON in the file that CONFORMANCE_RESULTS names.
"""

import json
import os

import pytest

WORSE_LAST = ["passed", "skipped", "failed"]

# By test: how its worst phase ended, and what was said.
_ended = {}


def pytest_configure(config):
    import test_config

    settings = getattr(test_config, "TestConfig", None)
    if settings is None:
        # The old tests ask for nothing of the kind.
        return
    settings.is_emulator = True
    settings.local_host = settings.host
    settings.credential = settings.credential_async = settings.masterKey
    test_config.CONTROL_PLANE_MAX_ATTEMPTS = 3
    test_config.SLEEP_TIME = 1
    test_config.SPLIT_TIMEOUT = 20


def pytest_runtest_logreport(report):
    # A failed part of a test fails the test; the other parts end when the test does.
    if type(report).__name__ == "SubtestReport" and not report.failed:
        return
    before, _ = _ended.get(report.nodeid, ("passed", ""))
    now = report.outcome
    if WORSE_LAST.index(now) >= WORSE_LAST.index(before):
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash else str(report.longrepr or "")
        _ended[report.nodeid] = (now, " ".join(text.split())[:300])


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish(nodeid, location):
    outcome, said = _ended.pop(nodeid, ("failed", "did not run"))
    write({"test": nodeid, "outcome": outcome, "said": said})


def pytest_collectreport(report):
    if report.failed:
        write({"test": report.nodeid, "outcome": "failed", "said": str(report.longrepr).strip().splitlines()[-1]})


def write(line):
    with open(os.environ["CONFORMANCE_RESULTS"], "a", encoding="utf-8") as results:
        print(json.dumps(line), file=results)
