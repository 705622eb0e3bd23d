"""The summary of a test run counts as ctest does, and says why something was skipped."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from summary import summarize

JUNIT = """<?xml version="1.0"?>
<testsuite>
  <testcase name="A.ok" status="run"><system-out>[  SKIPPED ] no</system-out></testcase>
  <testcase name="A.bad" status="fail"><failure message=""/><system-out>x</system-out></testcase>
  <testcase name="A.skip" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>[ RUN      ] A.skip
a.cc:4: Skipped
needs a card
of some kind
[  SKIPPED ] A.skip (0 ms)</system-out></testcase>
  <testcase name="A.silent" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>a.cc:5: Skipped

[  SKIPPED ] A.silent (0 ms)</system-out></testcase>
  <testcase name="script" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
    <system-out>SKIP: no network</system-out></testcase>
  <testcase name="A.off" status="disabled"><skipped message="Disabled"/></testcase>
  <testcase name="gone" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>
"""


class Summary(unittest.TestCase):
    def test_counts_and_reasons(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(JUNIT)
            file.flush()
            self.assertEqual(summarize("release", file.name), [
                "release: 7 tests, 2 failed, 4 skipped",
                "  failed: A.bad",
                "  failed: gone: Unable to find executable",
                "  skipped: A.off: disabled in its source",
                "  skipped: A.skip: needs a card of some kind",
                "  skipped: script: no network",
                "  skipped: A.silent: no reason given",
            ])


if __name__ == "__main__":
    unittest.main()
