"""The comparison of ./run as a test."""

import pathlib
import subprocess
import sys


def test_answers_differ_from_kafka_only_where_a_rule_says_so():
    done = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("run")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
