"""Files that the start can't use. H-7, A-31."""

import os
import subprocess

import pytest
from authority import files_of
from server import BINARY, Server


def refused(folder, **settings):
    """The status of a start that must not come off, and what it wrote."""
    server = Server(str(folder), INSTANCE_ID=1, **settings).spawn()
    try:
        return server.process.wait(15), server.log()
    finally:
        server.process.kill()


@pytest.fixture
def certificate(authority):
    return authority.issue()


def test_half_of_the_settings_is_an_error_that_names_both(tmp_path, certificate):
    for settings in ({"TLS_CERT_FILE": certificate.cert}, {"TLS_KEY_FILE": certificate.key}):
        status, log = refused(tmp_path, **settings)
        assert (status, log) == (2, "iggy-gateway-kafka: IGGY_KAFKA_TLS_CERT_FILE and IGGY_KAFKA_TLS_KEY_FILE must be set together\n")


def test_what_needs_a_certificate_says_so(tmp_path, authority):
    status, log = refused(tmp_path, TLS_CLIENT_CA_FILE=authority.ca)
    assert (status, log) == (2, "iggy-gateway-kafka: IGGY_KAFKA_TLS_CLIENT_CA_FILE needs IGGY_KAFKA_TLS_CERT_FILE\n")
    status, log = refused(tmp_path, IGGY_LISTEN_TLS="true")
    assert (status, log) == (2, "iggy-gateway-kafka: IGGY_KAFKA_IGGY_LISTEN_TLS=true needs IGGY_KAFKA_TLS_CERT_FILE\n")


@pytest.mark.parametrize("setting", ["TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CLIENT_CA_FILE"])
def test_a_file_that_is_missing_is_named_with_its_setting(tmp_path, certificate, authority, setting):
    missing = str(tmp_path / "missing.pem")
    status, log = refused(tmp_path, **files_of(certificate, authority.ca) | {setting: missing})
    assert status == 2
    assert f'IGGY_KAFKA_{setting}="{missing}"' in log and "No such file or directory" in log


@pytest.mark.parametrize("setting", ["TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CLIENT_CA_FILE"])
def test_a_file_that_is_no_pem_is_named_with_its_setting(tmp_path, certificate, authority, setting):
    (tmp_path / "text.pem").write_text("not a certificate\n")
    status, log = refused(tmp_path, **files_of(certificate, authority.ca) | {setting: tmp_path / "text.pem"})
    assert status == 1
    assert len(log.splitlines()) == 1 and ' error app "can\'t use the files for TLS" ' in log
    assert f'reason="{tmp_path}/text.pem: ' in log and f"IGGY_KAFKA_{setting}={tmp_path}/text.pem" in log


def test_a_key_of_another_certificate_is_an_error(tmp_path, certificate, authority):
    other = authority.issue()
    status, log = refused(tmp_path, TLS_CERT_FILE=certificate.cert, TLS_KEY_FILE=other.key)
    assert status == 1 and len(log.splitlines()) == 1
    assert f'reason="{other.key} is not the key of the certificate"' in log
    assert f"IGGY_KAFKA_TLS_KEY_FILE={other.key}" in log


def test_a_key_that_needs_a_password_is_an_error_and_no_question(tmp_path, certificate):
    locked = str(tmp_path / "locked.pem")
    subprocess.run(["openssl", "pkey", "-in", certificate.key, "-aes256", "-passout", "pass:x", "-out", locked], check=True, timeout=30)
    status, log = refused(tmp_path, TLS_CERT_FILE=certificate.cert, TLS_KEY_FILE=locked)
    assert status == 1 and len(log.splitlines()) == 1
    assert f'reason="{locked}: ' in log


def test_nothing_was_made_before_the_files_were_read(tmp_path, certificate, authority):
    refused(tmp_path, TLS_CERT_FILE=certificate.cert, TLS_KEY_FILE=authority.issue().key)
    assert not (tmp_path / "data").exists()


def test_one_file_may_hold_the_key_and_the_certificate(tmp_path, certificate):
    with Server(str(tmp_path), INSTANCE_ID=1, TLS_CERT_FILE=certificate.both, TLS_KEY_FILE=certificate.both):
        pass


def test_the_settings_can_be_checked_without_a_start(certificate):
    options = [f"--tls-cert-file={certificate.cert}", f"--tls-key-file={certificate.key}", "--iggy-listen-tls", "--check-config"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("IGGY_KAFKA_")}
    done = subprocess.run([BINARY, *options], env=environment, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0 and "IGGY_KAFKA_IGGY_LISTEN_TLS=true (--iggy-listen-tls)\n" in done.stdout
