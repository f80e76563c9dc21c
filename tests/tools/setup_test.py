"""tools/setup on machines of other kinds: with apt-get and without, as root and not. Every program it calls is a stand-in."""
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(__file__).resolve().parents[2] / "tools/setup"


class Setup(unittest.TestCase):
    def setUp(self):
        self.bin = pathlib.Path(tempfile.mkdtemp(prefix="igk-setup-"))
        self.addCleanup(shutil.rmtree, self.bin)
        for tool in ("sh", "awk", "sort", "dirname", "grep", "env", "cat"):
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.stand_in("id", "echo 0")

    def stand_in(self, name, script):
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def run_setup(self, *groups):
        run = subprocess.run([SETUP, *groups], env={"PATH": str(self.bin)}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return run.returncode, run.stdout + run.stderr

    def apt(self):
        log = self.bin / "log"
        self.stand_in("apt-get", f'echo "$@" >> {log}')
        self.stand_in("dpkg-query", '[ "$4" != libuv1-dev ] && echo "install ok installed"')
        return log

    def test_without_apt_it_prints_the_list_and_fails(self):
        code, text = self.run_setup("build")
        self.assertEqual(code, 1)
        self.assertIn("libuv1-dev", text)
        self.assertNotIn("kcat", text)

    def test_a_command_that_is_there_stands_for_its_package(self):
        for tool in ("kcat",):
            self.stand_in(tool, "")
        self.assertEqual(self.run_setup("try"), (0, ""))

    def test_as_root_it_installs_what_is_missing_and_nothing_else(self):
        log = self.apt()
        for tool in ("gcc", "g++", "cmake", "ninja", "pkg-config"):
            self.stand_in(tool, "")
        code, _ = self.run_setup("build")
        self.assertEqual(code, 0)
        self.assertEqual(log.read_text(), "update -qq\ninstall -y -qq --no-install-recommends libuv1-dev\n")

    def test_others_install_with_sudo(self):
        self.apt()
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo", f'echo "$1" >> {self.bin}/sudo-log; exec "$@"')
        self.run_setup("build")
        self.assertEqual((self.bin / "sudo-log").read_text(), "apt-get\nenv\n")

    def test_it_is_silent_when_all_is_there(self):
        self.apt()
        self.stand_in("dpkg-query", 'echo "install ok installed"')
        self.assertEqual(self.run_setup("build", "test", "fuzz"), (0, ""))
        self.assertNotIn("log", os.listdir(self.bin))

    def test_a_failed_installation_fails(self):
        self.apt()
        self.stand_in("apt-get", "exit 100")
        self.assertNotEqual(self.run_setup("build")[0], 0)


if __name__ == "__main__":
    unittest.main()
