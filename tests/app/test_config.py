"""The binary's options, start-up errors and exit codes, and that docs/CONFIGURATION.md says what --help says."""
import pathlib
import re

from gateway import ROOT, run

DOCUMENT = ROOT / "docs/CONFIGURATION.md"
SETTING = re.compile(r"  --(?P<option>[a-z-]+)=(?P<value>\S+), IGGY_KAFKA_(?P<name>[A-Z_]+)(?: \[(?P<default>.*)\])?\n      (?P<help>.*)\n")


def help_groups():
    """(title, settings) for each group of --help."""
    groups = []
    for block in run("--help").stdout.split("\n\n"):
        title, _, rest = block.partition("\n")
        settings = [m.groupdict() for m in SETTING.finditer(rest + "\n")]
        if settings:
            groups.append((title, settings))
    return groups


def test_help_shows_every_setting_as_option_and_variable():
    result = run("--help")
    assert (result.returncode, result.stderr) == (0, "")
    settings = [s for _, group in help_groups() for s in group]
    assert len(settings) == result.stdout.count("IGGY_KAFKA_") - 1  # one stands in the introduction
    assert all(s["option"] == s["name"].lower().replace("_", "-") for s in settings)
    assert {s["name"]: s["default"] for s in settings}["BIND_ADDR"] == "127.0.0.1:9093"


def test_the_document_has_the_tables_that_help_has():
    expected = ""
    for title, settings in help_groups():
        expected += f"\n### {title}\n\n| setting | value | default | meaning |\n|---|---|---|---|\n"
        for s in settings:
            value = s["value"].replace("|", " \\| ")
            default = f"`{s['default']}`" if s["default"] else ""
            expected += f"| `{s['name']}` | {value} | {default} | {s['help']} |\n"
    written = DOCUMENT.read_text(encoding="utf-8").partition("<!-- settings -->\n")[2].partition("\n<!-- end -->")[0]
    assert written == expected, f"put this between the marks:\n{expected}"


def test_version_says_what_it_is():
    result = run("--version")
    assert result.returncode == 0
    assert re.match(r"iggy-gateway-kafka \d+\.\d+\.\d+: ", result.stdout)


def test_check_config_prints_the_settings_and_writes_nothing(tmp_path):
    result = run("--check-config", "--threads=2", cwd=tmp_path, FSYNC="always", IGGY_PASSWORD="topsecret")
    assert result.returncode == 0
    assert "IGGY_KAFKA_THREADS=2 (--threads)\n" in result.stdout
    assert "IGGY_KAFKA_FSYNC=always (environment)\n" in result.stdout
    assert "IGGY_KAFKA_BIND_ADDR=127.0.0.1:9093 (default)\n" in result.stdout
    assert "IGGY_KAFKA_IGGY_PASSWORD=*** (environment)\n" in result.stdout
    assert "topsecret" not in result.stdout + result.stderr
    assert "iggy-gateway-kafka: warning: IGGY_KAFKA_INSTANCE_ID is not set: " in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_check_config_reads_the_file(tmp_path):
    file = tmp_path / "gateway.toml"
    file.write_text('bind_addr = "127.0.0.1:1"\nmax_connections = 5\n')
    result = run("--check-config", f"--config={file}", MAX_CONNECTIONS="6")
    assert result.returncode == 0
    assert "IGGY_KAFKA_BIND_ADDR=127.0.0.1:1 (file, line 1)\n" in result.stdout
    assert "IGGY_KAFKA_MAX_CONNECTIONS=6 (environment)\n" in result.stdout


def test_all_errors_come_at_once_with_exit_code_2(tmp_path):
    file = tmp_path / "gateway.toml"
    file.write_text('bind_adr = "127.0.0.1:1"\n')
    for check in (["--check-config"], []):
        result = run(*check, "--thread=2", f"--config={file}", MAX_CONNECTIONS="0", FSNYC="always")
        assert result.returncode == 2
        assert result.stdout == ""
        assert result.stderr.splitlines() == [
            "iggy-gateway-kafka: unknown option --thread; did you mean --threads?",
            "iggy-gateway-kafka: IGGY_KAFKA_FSNYC is not a known variable; did you mean IGGY_KAFKA_FSYNC?",
            f"iggy-gateway-kafka: {file}, line 1: unknown key bind_adr; did you mean bind_addr?",
            'iggy-gateway-kafka: IGGY_KAFKA_MAX_CONNECTIONS="0": must be a whole number from 1 to 2147483647',
        ]


def test_a_feature_that_is_not_there_yet_stops_the_start():
    result = run(SASL_ENABLED="true")
    assert result.returncode == 2
    assert result.stderr == "iggy-gateway-kafka: IGGY_KAFKA_SASL_ENABLED=true: this version has no SASL yet\n"


def test_more_errors_than_are_shown_are_counted():
    result = run(*[f"--no-such-option-{i}" for i in range(30)])
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == "iggy-gateway-kafka: and 6 more"


def test_only_documented_variables_are_named_in_the_documents():
    known = {s["name"] for _, group in help_groups() for s in group}
    for document in [ROOT / "README.md", *sorted(pathlib.Path(ROOT / "docs").glob("*.md"))]:
        named = set(re.findall(r"\bIGGY_KAFKA_([A-Z][A-Z_]*[A-Z])\b", document.read_text(encoding="utf-8")))
        assert named <= known | {"SERVICE_HOST", "X_Y", "FSNYC"}, document  # examples of what is not known
