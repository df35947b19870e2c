"""The clock of a server under test, for every suite in Python: it stands still while a test has it, and moves when told."""

import contextlib
import json
import os
import urllib.request

KEY = os.environ["MAYFLY_TEST_KEY"]
HTTP = os.environ["MAYFLY_TEST_HTTP"]


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
    clock = Clock(url)
    clock.move(freeze=True)
    yield clock
    clock.move(freeze=False)
