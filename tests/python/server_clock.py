"""The clock of a server under test, for every suite in Python: it stands still while a test has it, and moves when told."""

import contextlib
import json
import os
import urllib.request

import pytest

KEY = os.environ["MAYFLY_TEST_KEY"]
HTTP = os.environ["MAYFLY_TEST_HTTP"]

# A server whose store is shared goes by the clock of the database server, and takes no commands for tests.
SHARED = "MAYFLY_TEST_SHARED" in os.environ


def needs_test_server():
    if SHARED:
        pytest.skip("the store is shared: the clock is not ours to move")


class Clock:
    def __init__(self, url=HTTP):
        self.url = url

    def move(self, **change):
        request = urllib.request.Request(
            self.url + "_mayfly/clock",
            data=json.dumps(change).encode(),
            headers={"authorization": f"Bearer {KEY}"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def advance(self, seconds):
        self.move(advanceSeconds=seconds)

    def now(self):
        """The server's time in seconds, with a fraction."""
        return self.move(advanceSeconds=0)["unixSeconds"]


@contextlib.contextmanager
def stopped_clock(url=HTTP):
    if url == HTTP:
        needs_test_server()
    clock = Clock(url)
    clock.move(freeze=True)
    yield clock
    clock.move(freeze=False)
